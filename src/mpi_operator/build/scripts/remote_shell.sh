#!/bin/sh
# The remote shell of mpirun: ssh that waits for workers that do not answer yet.
#
#   remote_shell.sh [ssh options] HOST COMMAND...
#
# The pods of a job start together, so a worker's name or its sshd may come after the launcher.
# A command is only tried again if it certainly did not begin: ssh failed before it was authenticated.
# It reports to the operator in lines of the form
#
#   mpi-operator: event=lost worker=pi-worker-1 seconds=12 cause=Connection reset by peer
#
# Needs sh, ssh and sleep; without a place for a temporary file it is plain ssh.

environment=/run/mpi-operator/environment # written by worker.sh
termination_log=/dev/termination-log
hosts=/etc/hosts
longest_refusal=1800 # seconds: an image may still be pulled. For a name it waits forever
gave_up=79           # the exit code

[ -e /proc/$$/fd/0 ] || exec </dev/null # the caller may have closed it

# Intel MPI shows what this prints only when it ends. So it goes to the log of the container as well.
say() {
  case $command in
    *' --upstream-host '*) printf 'mpi-operator: %s\n' "$*" 2>/dev/null >>/proc/1/fd/2 ;;
  esac
  printf 'mpi-operator: %s\n' "$*" >&2
}
command=''

# A signal for this process is meant for its child, and in the end for ssh.
child='' signal=''
stop() {
  signal=$1
  [ -z "$child" ] || kill -s TERM "$child" 2>/dev/null
}
trap 'stop 1' HUP
trap 'stop 2' INT
trap 'stop 15' TERM

await() {
  child=$1
  [ -z "$signal" ] || kill -s TERM "$child" 2>/dev/null # it came before there was a child
  wait "$child"
  code=$?
  while kill -0 "$child" 2>/dev/null; do # a signal came, and it has not ended yet
    wait "$child"
    code=$?
  done
  child=''
}

# The shell takes the standard input away from what it does not wait for.
exec 3<&0

# Open MPI kills the group of this process when it has lost a worker, before ssh has reported it. So a
# process with its own group does the work. When mpirun is gone, it stops trying.
first_process=${MPI_OPERATOR_FIRST_PROCESS-}
starter=${MPI_OPERATOR_STARTER:-$PPID} # mpirun, or a daemon of it
unset MPI_OPERATOR_FIRST_PROCESS MPI_OPERATOR_STARTER
if [ -z "$first_process" ] && command -v setsid >/dev/null 2>&1; then
  MPI_OPERATOR_FIRST_PROCESS=$$ MPI_OPERATOR_STARTER=$starter setsid /bin/sh "$0" "$@" <&3 3<&- &
  await $!
  exit "$code"
fi

# Sorts the arguments: "$@" keeps the options, without -q, because ssh's messages are needed.
host='' command='' is_value='' is_end='' remaining=$#
while [ "$remaining" -gt 0 ]; do
  word=$1
  if [ -n "$is_value" ]; then
    is_value='' && set -- "$@" "$word"
  else
    case $is_end$word in
      --) is_end=yes ;;
      -?*)
        flags=${word#-} kept=''
        while [ -n "$flags" ]; do
          others=${flags#?} && flag=${flags%"$others"}
          case $flag in
            q) ;;
            [BbcDEeFIiJLlmOoPpQRSWw])
              kept=$kept$flags
              [ -n "$others" ] || is_value=yes
              others=''
              ;;
            *) kept=$kept$flag ;;
          esac
          flags=$others
        done
        [ -z "$kept" ] || set -- "$@" "-$kept"
        ;;
      *)
        [ -z "$host" ] || break # the command begins
        host=$word is_end=''
        ;;
    esac
  fi
  shift
  remaining=$((remaining - 1))
done
while [ "$remaining" -gt 0 ]; do
  command="${command:+$command }$1" # as ssh does
  shift
  remaining=$((remaining - 1))
done
[ -n "$command" ] || exec ssh "$@" -- "$host"
worker=${host%%.*}

# Adds a line to the termination message of the container.
record() { printf 'mpi-operator: %s\n' "$*" 2>/dev/null >>"$termination_log"; }

# A launcher that starts something after it lost a worker continues without it.
if [ -s "$termination_log" ]; then
  lost=''
  while IFS= read -r line; do
    case $line in
      'mpi-operator: event=lost '*) lost=yes ;;
      'mpi-operator: event=continued '*) lost='' ;;
    esac
  done <"$termination_log"
  [ -z "$lost" ] || record "event=continued worker=$worker"
fi

# A host that is this very pod needs no ssh, and a launcher that works too has no sshd.
read -r here 2>/dev/null </proc/sys/kernel/hostname
[ -z "$here" ] || [ "$worker" != "$here" ] || exec /bin/sh -c "$command"

# Sessions of sshd begin with an empty environment.
command="[ ! -r $environment ] || . $environment; $command"

# Hydra's proxies call back by the name of this host, and give up at once where it is not known. DNS may
# know it later than the worker; but the kubelet writes the address of a pod to its hosts file. On the network
# of a node it is the file of the node, which may have addresses that lead nowhere.
find_address() {
  blank=" $(printf '\t')"
  while read -r address names || [ -n "$address" ]; do
    case "$address $names" in '# Kubernetes-managed hosts file (host network).'*) return 1 ;; esac
    names=${names%%#*}
    case " $names " in *[$blank]"$here"[$blank]*) ;; *) continue ;; esac
    case $address in '' | '#'* | 127.* | *:*) ;; *) return 0 ;; esac
  done 2>/dev/null <"$hosts"
  return 1
}
replace() {
  case $command in *"$1"*) command=${command%%"$1"*}$2${command#*"$1"} ;; esac
}
call_back_by() {
  replace "--control-port $here:" "--control-port $1:"   # MPICH
  replace "--upstream-host $here " "--upstream-host $1 " # Intel MPI
}

# On the network of the nodes each worker has its own port. It comes first, so it wins: that is where sshd
# listens, whatever the user's options say. The name of this host is that of a node there, which may not
# resolve in the cluster; but sshd knows the address of its client.
number=${worker##*-worker-}
case ${MPI_OPERATOR_FIRST_SSH_PORT:-none}$number in
  *[!0-9]*)
    [ -z "$here" ] || ! find_address || call_back_by "$address"
    ;;
  *)
    set -- -p $((20000 + (MPI_OPERATOR_FIRST_SSH_PORT - 20000 + number) % 10000)) "$@"
    [ -z "$here" ] ||
      call_back_by "\$(case \$SSH_CONNECTION in *:*) echo $here ;; *) echo \${SSH_CONNECTION%% *} ;; esac)"
    ;;
esac

# A cut link is silent. After this time the cluster has given up on the node as well; a node that comes back
# earlier finds the session intact. 0 means forever.
node_timeout=${MPI_OPERATOR_NODE_TIMEOUT_SECONDS:-360} # seconds
case $node_timeout in
  0) ;;
  *[!0-9]* | 0* | ??????????*) node_timeout=360 ;;
esac
set -- "$@" -o ConnectTimeout=15 -o ServerAliveInterval=$(((node_timeout + 11) / 12)) -o ServerAliveCountMax=11

# A process whose parent has ended gets another one.
has_parent() {
  read -r _ _ _ parent _ 2>/dev/null <"/proc/$1/stat" && [ "$parent" = "$2" ]
}
is_left_alone() { [ -n "$first_process" ] && ! has_parent $$ "$first_process"; }

read_clock() {
  read -r now _ </proc/uptime
  now=${now%%.*}
}

# A new file, whatever exists already: a launcher that was killed leaves its own behind, and the next one may
# have the same process id.
make_log() {
  read_clock
  umask 077
  set -C
  for directory in "${TMPDIR:-/tmp}" /tmp /dev/shm; do
    log=$directory/mpi-remote-shell.$$.$now
    if (: >"$log") 2>/dev/null; then
      set +C
      return
    fi
  done
  set +C
  return 1
}
mask=$(umask)
make_log || exec ssh "$@" -- "$host" "$command"
umask "$mask"
trap 'rm -f "$log"' EXIT

# Runs ssh once. Its messages go to a file, apart from the output of the command. With DEBUG1 they say when
# it is authenticated, and that the command has ended.
try() {
  : >"$log"
  ssh -o LogLevel=DEBUG1 -o ConnectionAttempts=1 "$@" -E "$log" -- "$host" "$command" <&3 3<&- &
  await $!
}

# Sets `missing` to what does not answer yet, name or sshd, and `cause` to ssh's message about it. Or `broken`
# to its message about a connection that ended before the command did.
return_char=$(printf '\r')
find_out() {
  missing='' cause='' broken='' is_final='' has_begun=''
  while IFS= read -r line || [ -n "$line" ]; do
    line=${line%"$return_char"}
    case $line in
      'debug1: '*' rtype exit-status '* | 'Killed by signal '*) has_begun='' broken='' ;;
      'debug1: '* | 'Transferred: '* | 'Bytes per second: '*) ;;
      'Authenticated to '*) is_final=yes has_begun=yes broken='the connection was closed' ;;
      *'Permission denied ('* | 'Host key verification failed'* | *'Too many authentication failures'*)
        is_final=yes
        ;;
      *'Could not resolve hostname'*) missing=name cause=${line#ssh: } ;;
      'ssh: connect to host '* | 'Connection closed by '* | 'Connection reset by '* | *'Connection timed out'* | \
        'kex_exchange_identification: '* | 'ssh_exchange_identification: '* | 'banner exchange: '* | \
        'Connection to '*' timed out' | 'ssh_dispatch_run_fatal: '*)
        missing=sshd cause=${line#ssh: }
        [ -z "$has_begun" ] || broken=$line
        ;;
      'Timeout, server '* | 'client_loop: '* | 'Read from remote host '*) [ -z "$has_begun" ] || broken=$line ;;
    esac
  done <"$log"
  [ -z "$is_final" ] || missing=''
}

# Prints the messages of ssh, without those of every session.
pass_on() {
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in
      debug1:* | 'Authenticated to '* | 'Transferred: '* | 'Bytes per second: '* | 'Warning: Permanently added '*) ;;
      'OpenSSH_'*) ;;
      *) printf '%s\n' "${line%"$return_char"}" >&2 ;;
    esac
  done <"$log"
}

is_hopeless() {
  case ${MPI_OPERATOR_INIT_TIMEOUT:-none} in
    *[!0-9]*) [ "$missing" = sshd ] && [ $((now - refused)) -ge "$longest_refusal" ] ;;
    *) [ "$waited" -ge "$MPI_OPERATOR_INIT_TIMEOUT" ] ;;
  esac
}

# Hydra ignores that ssh has ended. It waits for its proxy, which will not call any more; but it can be
# interrupted, Intel's only twice. Open MPI ends by itself.
end_hydra() {
  case $broken in
    'Timeout, server '* | 'client_loop: '* | 'Read from remote host '*) ;; # the last two, if TCP was first
    *) return ;;
  esac
  case $command in *hydra_*_proxy*) sleep 2 ;; *) return ;; esac # it may have noticed
  for _ in 1 2 3 4 5; do
    [ -z "$signal" ] && ! is_left_alone && has_parent "${first_process:-$$}" "$starter" || return
    kill -s INT "$starter" 2>/dev/null
    sleep 1
  done
}

# Longer and longer: a large job that waits for a queue would keep the name servers busy.
pause() {
  case $tries in
    [1-4]) seconds=0.1 ;;
    [5-9]) seconds=0.2 ;;
    1[0-3]) seconds=0.5 ;;
    *) if [ "$waited" -lt 60 ]; then seconds=2; else seconds=5; fi ;;
  esac
  sleep "$seconds" 2>/dev/null || sleep 1
}

read_clock
began=$now reported=$now refused='' tries=0 report_after=5
while :; do
  try "$@"
  if [ "$code" -ne 255 ]; then
    [ -z "$signal" ] || code=$((128 + signal))
    exit "$code"
  fi
  find_out
  read_clock
  # At once: the container ends with mpirun, and mpirun may have ended this before ssh did.
  [ -z "$broken" ] || record "event=lost worker=$worker seconds=$((now - began)) cause=$broken"
  [ -z "$signal" ] || exit $((128 + signal))
  if [ -z "$missing" ]; then
    pass_on
    end_hydra
    exit "$code"
  fi
  tries=$((tries + 1)) waited=$((now - began))
  if [ "$missing" = name ]; then refused=''; else refused=${refused:-$now}; fi
  if is_hopeless; then
    say "event=gave-up worker=$worker seconds=$waited cause=$cause"
    record "event=gave-up worker=$worker seconds=$waited cause=$cause"
    exit "$gave_up"
  fi
  if [ $((now - reported)) -ge "$report_after" ]; then
    say "event=waiting worker=$worker seconds=$waited cause=$cause"
    reported=$now report_after=30
  fi
  pause
  [ -z "$signal" ] || exit $((128 + signal))
  ! is_left_alone || exit "$gave_up"
done
