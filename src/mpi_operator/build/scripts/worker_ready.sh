#!/bin/sh
# Checks whether the sshd of a worker listens.
#
#   worker_ready.sh [the arguments of sshd]
#
# Checks for 2s, so that a probe every second succeeds as soon as sshd listens.

configuration=/etc/ssh/sshd_config ports='' tab=$(printf '\t')

add_option() { # as in the configuration: "Port 22", "Port=22", "ListenAddress 0.0.0.0:22"
  set -f
  IFS=" $tab=\""
  # shellcheck disable=SC2086
  set -- $1
  unset IFS
  set +f
  case $1 in
    [Pp][Oo][Rr][Tt]) ports="$ports $2" ;;
    [Ll][Ii][Ss][Tt][Ee][Nn][Aa][Dd][Dd][Rr][Ee][Ss][Ss])
      case $2 in
        \[*\]:*) ports="$ports ${2##*]:}" ;;
        *:*:*) ;;
        *:*) ports="$ports ${2##*:}" ;;
      esac
      ;;
  esac
}

read_configuration() {
  for file in "$@"; do
    [ -r "$file" ] || continue
    while read -r line || [ -n "$line" ]; do
      case $line in [Mm]atch*) break ;; esac
      add_option "$line"
    done <"$file"
  done
}

while [ $# -gt 0 ]; do
  word=$1 skip=0
  shift
  case $word in # a value in the same word first: -oUsePAM=no does not end in an option
    -p?*) ports="$ports ${word#-p}" ;;
    -f?*) configuration=${word#-f} ;;
    -o?*) add_option "${word#-o}" ;;
    -*p) ports="$ports ${1-}" && skip=1 ;;
    -*f) configuration=${1-} && skip=1 ;;
    -*o) add_option "${1-}" && skip=1 ;;
  esac
  [ "$skip" = 0 ] || [ $# -eq 0 ] || shift
done
[ -n "$ports" ] || read_configuration "$configuration"
[ "$configuration" != /etc/ssh/sshd_config ] || [ -n "$ports" ] || read_configuration /etc/ssh/sshd_config.d/*.conf
wanted=''
for port in ${ports:-22}; do
  case $port in *[!0-9]*) continue ;; esac
  wanted="$wanted $(printf '%04X' "$port")"
done

# A line is: number, local address, remote address, state. 0A is LISTEN. Read by cat, because a shell reads
# byte by byte, and the kernel rebuilds the table for each.
any=00000000
listens() {
  tables=$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null)
  for port in $wanted; do
    case $tables in
      *":$port $any:0000 0A "* | *":$port $any$any$any$any:0000 0A "*) return 0 ;;
    esac
  done
  return 1
}

# A wrong guess must not keep a job from starting: the launcher waits for sshd, too.
is_old() {
  read -r uptime _ </proc/uptime
  read -r facts </proc/1/stat
  facts=${facts##*) }
  # shellcheck disable=SC2086
  set -- $facts
  [ $((${uptime%%.*} - ${20} / 100)) -ge 60 ]
}

for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  listens && exit 0
  is_old && exit 0
  sleep 0.1 2>/dev/null || sleep 1
done
exit 1
