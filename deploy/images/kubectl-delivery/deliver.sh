#!/bin/sh
# Copies kubectl to $TARGET_DIR, and renames it at the end, so that no one sees half a file.
set -eu
cp /bin/kubectl "$TARGET_DIR/.kubectl.$$"
mv "$TARGET_DIR/.kubectl.$$" "$TARGET_DIR/kubectl"
echo "kubectl is at $TARGET_DIR/kubectl"
