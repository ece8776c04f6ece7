#!/bin/sh
# Runs the command of the container. Before that,
# - for sshd, or a shell that may start it: a host key where none is mounted, and the container's environment for the
#   sessions, which otherwise start with an empty one;
# - for a launcher: waits until the names of the workers are known.
# A pod's `command` replaces this script. The operator's own start does the same there, and the key of the job is a host key.
set -eu

private=/tmp/.mpi-operator               # for what is made here; sshd_config knows this path
shared=/run/mpi-operator                 # where the operator's remote shell looks for the environment
own='HOME|USER|LOGNAME|SHELL|PWD|OLDPWD|SHLVL|TERM|HOSTNAME|_' # of this process, not of the container

is_sshd() { [ "${1##*/}" = sshd ]; }

is_worker() {
  [ "${K_MPI_JOB_ROLE:-worker}" = worker ] || return 1
  case ${1##*/} in sshd | sh | bash | dash | ash | ksh | zsh) ;; *) return 1 ;; esac
}

make_host_key() {
  for key in /root/.ssh/id_rsa /home/mpiuser/.ssh/id_rsa "$private/host_key"; do
    [ ! -r "$key" ] || return 0
  done
  ssh-keygen -q -t ed25519 -N '' -C '' -f "$private/host_key"
}

share_environment() {
  [ -d "$shared" ] && [ -w "$shared" ] || return 1
  (
    umask 077
    IFS='|'
    unset $own
    export -p >"$shared/environment"
  )
}

# `SetEnv NAME="value" …` is one line, so a value of several lines cannot be handed on this way.
set_env() {
  env -0 | sed -zE "/\n/d; /^($own)=/d; /^[A-Za-z_][A-Za-z0-9_]*=/!d; s/[\\\\\"]/\\\\&/g; s/=(.*)/=\"\1\"/" | tr '\0' ' '
}

# The file after the last -f, which is the one that sshd reads.
configuration_of() {
  file=/etc/ssh/sshd_config option=
  for argument; do
    [ "$option" != -f ] || file=$argument
    option=$argument
  done
  printf '%s\n' "$file"
}

write_configuration() {
  umask 077
  printf 'SetEnv %s\nInclude %s\n' "$(set_env)" "$(configuration_of "$@")" >"$private/sshd_config"
}

wait_for_name() {
  for delay in 0.1 0.2 0.4 0.8 1.6 3.2 6.4 12.8 25.6; do
    ! getent hosts "$1" >/dev/null || return 0
    sleep "$delay"
  done
  echo "entrypoint: no address is known of $1; going on without it" >&2
}

wait_for_hosts() {
  for host in $(hostname) $(sed 's/[: ].*//' /etc/mpi/hostfile); do wait_for_name "$host"; done
}

if is_worker "$1"; then
  mkdir -p -m 700 "$private" || echo "entrypoint: /tmp cannot be written; without a mounted key sshd will not start" >&2
  make_host_key || true
  if ! share_environment && is_sshd "$1" && write_configuration "$@"; then set -- "$@" -f "$private/sshd_config"; fi
elif [ "${K_MPI_JOB_ROLE:-}" = launcher ] && [ -r /etc/mpi/hostfile ]; then
  wait_for_hosts
fi
exec "$@"
