#!/bin/sh
# Runs the command of the container. Before that:
# - for sshd, or a shell that may start it, it generates a host key if none is mounted, and passes the container's
#   environment to sshd's sessions, which otherwise start with an empty one;
# - for a launcher, it waits until the names of the workers resolve.
# If the operator's own scripts are mounted (/etc/mpi), they pass the environment and wait for the workers instead.
# A pod's `command` replaces this script. With our operator nothing is lost: it starts sshd in the same way.
set -eu

scripts=/etc/mpi
private=/tmp/.mpi-operator # for generated files; sshd_config contains this path
own='HOME|USER|LOGNAME|SHELL|PWD|OLDPWD|SHLVL|TERM|HOSTNAME|_' # variables of this process, not of the container

is_sshd() { [ "${1##*/}" = sshd ]; }

is_worker() {
  [ "${K_MPI_JOB_ROLE:-worker}" = worker ] || return 1
  case ${1##*/} in sshd | sh | bash | dash | ash | ksh | zsh) ;; *) return 1 ;; esac
}

is_launcher() { [ "${K_MPI_JOB_ROLE:-}" = launcher ] && [ -r "$scripts/hostfile" ]; }

make_host_key() {
  for key in /root/.ssh/id_rsa /home/mpiuser/.ssh/id_rsa "$private/host_key"; do
    [ ! -r "$key" ] || return 0
  done
  ssh-keygen -q -t ed25519 -N '' -C '' -f "$private/host_key"
}

# `SetEnv NAME="value" …` is one line, so multi-line values are left out.
set_env() {
  env -0 | sed -zE "/\n/d; /^($own)=/d; /^[A-Za-z_][A-Za-z0-9_]*=/!d; s/[\\\\\"]/\\\\&/g; s/=(.*)/=\"\1\"/" | tr '\0' ' '
}

# The file after the last -f: sshd reads that one.
configuration_of() {
  file=/etc/ssh/sshd_config option=
  for argument; do
    [ "$option" != -f ] || file=$argument
    option=$argument
  done
  printf '%s\n' "$file"
}

write_configuration() (
  umask 077
  printf 'SetEnv %s\nInclude %s\n' "$(set_env)" "$(configuration_of "$@")" >"$private/sshd_config"
)

find_unknown() { # sets `unknown` to a host that does not resolve yet
  unknown=
  for host in $(hostname) $(sed 's/[: ].*//' "$scripts/hostfile"); do
    getent hosts "$host" >/dev/null || { unknown=$host && return 0; }
  done
}

wait_for_hosts() {
  for delay in 0.1 0.2 0.4 0.8 1.6 3.2 6.4 12.8 25.6; do
    find_unknown
    [ -n "$unknown" ] || return 0
    sleep "$delay"
  done
  echo "entrypoint: $unknown does not resolve, continuing without it" >&2
}

if is_worker "$1"; then
  [ -d "$private" ] || mkdir -m 700 "$private" ||
    echo "entrypoint: /tmp is not writable: sshd will not start unless a host key is mounted" >&2
  make_host_key || true
  [ ! -r "$scripts/worker.sh" ] || exec /bin/sh "$scripts/worker.sh" "$@"
  if is_sshd "$1" && write_configuration "$@"; then set -- "$@" -f "$private/sshd_config"; fi
elif is_launcher && [ ! -r "$scripts/remote_shell.sh" ]; then
  wait_for_hosts
fi
exec "$@"
