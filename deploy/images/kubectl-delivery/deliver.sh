#!/bin/sh
# Copies kubectl to $TARGET_DIR. Under another name first: whoever looks finds all of it or nothing.
set -eu
cp /bin/kubectl "$TARGET_DIR/.kubectl.$$"
mv "$TARGET_DIR/.kubectl.$$" "$TARGET_DIR/kubectl"
echo "kubectl is at $TARGET_DIR/kubectl"
