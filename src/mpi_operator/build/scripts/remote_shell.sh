#!/bin/sh
# The remote shell of mpirun: ssh that waits for workers which are not there yet.
#
#   remote_shell.sh [ssh options] HOST COMMAND...
#
# The pods of a job start together, so a worker's name or its sshd may come after the launcher.
# Only what certainly did not begin is tried again: ssh failed, and never got to be authenticated.
# Needs sh, ssh and sleep; without a place for a temporary file it is plain ssh.

environment=/run/mpi-operator/environment # written by worker.sh
last_words=/dev/termination-log
hosts=/etc/hosts
longest_refusal=1800 # seconds: an image may still be pulled. Names are waited for without end
gave_up=79           # the exit code

[ -e /proc/$$/fd/0 ] || exec </dev/null # whoever started this may have closed it

# Intel MPI keeps to itself what this says, until it ends. So it goes to the log of the container as well.
say() {
  case $command in
    *' --upstream-host '*) printf 'mpi-operator: %s\n' "$*" 2>/dev/null >>/proc/1/fd/2 ;;
  esac
  printf 'mpi-operator: %s\n' "$*" >&2
}
command=''

# Whoever ends this process means its child, and in the end ssh.
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

# Open MPI kills the group of this process when it has lost a worker, before ssh has told us of it. So all
# is done by a process with a group of its own. Alone, it tries nothing any more.
first_process=${MPI_OPERATOR_FIRST_PROCESS-}
starter=${MPI_OPERATOR_STARTER:-$PPID} # mpirun, or a daemon of it
unset MPI_OPERATOR_FIRST_PROCESS MPI_OPERATOR_STARTER
if [ -z "$first_process" ] && command -v setsid >/dev/null 2>&1; then
  MPI_OPERATOR_FIRST_PROCESS=$$ MPI_OPERATOR_STARTER=$starter setsid /bin/sh "$0" "$@" <&3 3<&- &
  await $!
  exit "$code"
fi

# Sorts the arguments: what is left in "$@" are options, without -q, for ssh's words are needed.
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

# What the status of the pod says when it is over.
leave_word() { printf 'mpi-operator: %s\n' "$*" 2>/dev/null >>"$last_words"; }

# A launcher that starts something after it lost a worker knows how to do without it.
if [ -s "$last_words" ]; then
  lost=''
  while IFS= read -r line; do
    case $line in
      'mpi-operator: event=lost '*) lost=yes ;;
      'mpi-operator: event=continued '*) lost='' ;;
    esac
  done <"$last_words"
  [ -z "$lost" ] || leave_word "event=continued worker=$worker"
fi

# A host that is this very pod needs no ssh, and a launcher that works too has no sshd.
read -r here 2>/dev/null </proc/sys/kernel/hostname
[ -z "$here" ] || [ "$worker" != "$here" ] || exec /bin/sh -c "$command"

# Sessions of sshd begin with an empty environment.
command="[ ! -r $environment ] || . $environment; $command"

# Hydra's proxies call back by the name of this host, and give up at once where it is not known. DNS may
# know it later than the worker; but a kubelet tells a pod its own address. On the network of a node the file
# is the node's, who may have addresses that lead nowhere.
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

# On the network of the nodes each worker has a port of its own. It comes first, and so it counts: that
# is where sshd listens, whatever the user has told ssh. The name of this host is that of a node there, which
# nobody in the cluster may know; but sshd knows from where it was called.
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

# A link that is cut says nothing. After this time the cluster has given up on the node as well, so that
# whoever comes back earlier finds the session as it was. 0 is for ever.
patience=${MPI_OPERATOR_NODE_PATIENCE:-360} # seconds
case $patience in
  0) ;;
  *[!0-9]* | 0* | ??????????*) patience=360 ;;
esac
set -- "$@" -o ConnectTimeout=15 -o ServerAliveInterval=$(((patience + 11) / 12)) -o ServerAliveCountMax=11

# What is left alone gets another parent.
has_parent() {
  read -r _ _ _ parent _ 2>/dev/null <"/proc/$1/stat" && [ "$parent" = "$2" ]
}
is_left_alone() { [ -n "$first_process" ] && ! has_parent $$ "$first_process"; }

read_clock() {
  read -r now _ </proc/uptime
  now=${now%%.*}
}

# Nobody else's file, whatever lies there already: a launcher that was killed leaves its own behind,
# and the next one may have the same number.
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

# Runs ssh once. Its own words go to a file, so that those of the command stay apart; DEBUG1, for then it
# says when it is authenticated, and that the command has ended.
try() {
  : >"$log"
  ssh -o LogLevel=DEBUG1 -o ConnectionAttempts=1 "$@" -E "$log" -- "$host" "$command" <&3 3<&- &
  await $!
}

# Sets `missing` to what is not there yet, name or sshd, and `cause` to ssh's words about it. Or `broken`
# to its words about a connection that ended before the command did.
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

# What ssh has to say, less what it says about every session.
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

# Hydra does not mind that ssh has ended. It waits for its proxy, who will not call any more; but it can be
# interrupted, and Intel's wants that twice. Open MPI ends by itself.
end_hydra() {
  case $broken in
    'Timeout, server '* | 'client_loop: '* | 'Read from remote host '*) ;; # the last two, if TCP was first
    *) return ;;
  esac
  case $command in *hydra_*_proxy*) sleep 2 ;; *) return ;; esac # it may have heard of it
  for _ in 1 2 3 4 5; do
    [ -z "$signal" ] && ! is_left_alone && has_parent "${first_process:-$$}" "$starter" || return
    kill -s INT "$starter" 2>/dev/null
    sleep 1
  done
}

# Later and later: a large job that waits for a queue would keep the name servers busy.
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
began=$now told=$now refused='' tries=0 patience=5
while :; do
  try "$@"
  if [ "$code" -ne 255 ]; then
    [ -z "$signal" ] || code=$((128 + signal))
    exit "$code"
  fi
  find_out
  read_clock
  # At once: when mpirun has ended, so has its container; and mpirun may have ended this before ssh did.
  [ -z "$broken" ] || leave_word "event=lost worker=$worker seconds=$((now - began)) cause=$broken"
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
    leave_word "event=gave-up worker=$worker seconds=$waited cause=$cause"
    exit "$gave_up"
  fi
  if [ $((now - told)) -ge "$patience" ]; then
    say "event=waiting worker=$worker seconds=$waited cause=$cause"
    told=$now patience=30
  fi
  pause
  [ -z "$signal" ] || exit $((128 + signal))
  ! is_left_alone || exit "$gave_up"
done
