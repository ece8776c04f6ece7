#!/bin/sh
# The remote shell of mpirun where workers have no sshd: runs a command in a worker by exec.
#
#   kubexec.sh [options] HOST COMMAND...
#
# The exec client, which `kubectl-delivery` has brought, waits for workers that do not run yet. Where pods are
# processes of one machine, its agent does the same.

agent=mpi-operator-agent
client=/opt/kube/kubectl
termination_log=/dev/termination-log

if command -v "$agent" >/dev/null 2>&1; then exec "$agent" "$@"; fi
if [ ! -x "$client" ]; then
  # Open MPI looks for this file in workers, too. Only the launcher may start something.
  echo "mpi-operator: $client is missing: only the main container of a launcher can reach workers" >&2
  exit 255
fi
# Images of others deliver kubectl here, and nothing beside it.
if [ ! -e "${client%/*}/namespace" ]; then
  words="mpi-operator: $client is not the exec client of the MPI operator: \
set --kubectl-delivery-image of the operator to mpioperator/kubectl-delivery or a copy of it"
  echo "$words" >&2
  [ -s "$termination_log" ] || echo "$words" 2>/dev/null >"$termination_log"
  exit 255
fi
exec "$client" remote-shell --container @CONTAINER@ -- "$@"
