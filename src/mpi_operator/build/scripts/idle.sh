#!/bin/sh
# Runs the command that keeps a worker alive while the launcher starts processes in it.
#
#   idle.sh COMMAND...
#
# As the first process of a container, `sleep` would ignore SIGTERM, so that each deletion took half a minute. It
# would also leave zombies behind.

child=''
trap '[ -z "$child" ] || kill -s TERM "$child" 2>/dev/null; exit 143' TERM INT
"$@" &
child=$!
wait "$child"
