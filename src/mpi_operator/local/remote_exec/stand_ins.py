"""Programs that stand in for those of an image: ssh, sshd, hostname, and sometimes mpirun.

*sshd.* Images start it as `/usr/sbin/sshd -De`, or at the end of a small script. A machine without
root cannot, and need not: `agent_server` starts processes in a pod without asking the pod.

*mpirun.* Open MPI's daemons tell hosts apart by `gethostname`. Without namespaces all pods have the
machine's name, and with several daemons of one name a job hangs. So in the place of `mpirun` a pod
finds `mpirun_wrapper`: it gives the real one a single host, itself, and has an agent start each
rank in the sandbox of the worker where it belongs. MPICH and Intel MPI do not need this. Ranks are
placed slot by slot; options that ask for another order are ignored.

*Standard input.* The mpirun of Open MPI 5 does not pass on the end of its input, so a rank that
reads all of it would wait for ever. An agent that becomes rank 0 gets the descriptor from the node.
"""

import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from mpi_operator.mpi_variables import OPEN_MPI

from .mpirun_wrapper import HOSTS, LAUNCHER_ONLY, split_options

SOCKET = "agent.sock"
AGENT = "mpi-operator-agent"

INPUT_AGENT = "mpi-operator-input"
# The host name of the pod in which an agent has started a program.
STARTED_ON = "MPI_OPERATOR_STARTED_ON"
RANK_AGENT = OPEN_MPI.rank_agent[0]  # the variable

_RANK_AGENT = "mpi-operator-rank"
_MPIRUN = ("mpirun", "mpiexec", "orterun")
_SHELLS = ("sh", "bash", "dash", "ash", "zsh", "ksh")
_SSHD = re.compile(r"(?<![\w./-])(?:/usr/sbin/|/usr/bin/|/usr/local/sbin/|/sbin/)?sshd(?![\w./-])")
_JOB, _RANK = OPEN_MPI.job, OPEN_MPI.rank[0]
# The first job of an mpirun is its own; what that spawns has ranks with the same numbers.
_RANK_0 = "@1"
_INPUT = """#!/bin/sh
case "${job} ${rank}" in
  *{first}" 0") exec {call} "$@" ;;
esac
exec "$@"
"""
# For scripts that end in sshd: a program that runs until it is terminated.
_WAIT = """#!/bin/sh
trap 'exit 0' TERM INT HUP
while :; do sleep 3600 & wait $!; done
"""
# Without namespaces all pods have the machine's host name. Ranks of Hydra have the launcher's PATH
# and find its stand-in. So the name that their agent has set wins.
_HOSTNAME = """#!/bin/sh
case "$*" in
  "" | -f | --fqdn | -s | --short) echo ${{{variable}:-{name}}} ;;
  *) PATH=/usr/bin:/bin exec hostname "$@" ;;
esac
"""


def programs(pod: str, hostname: str) -> dict[str, str]:
    """The stand-ins of every pod, by name; `pod` is the pod's directory as the pod sees it."""
    call = _call("agent.py", f"{pod}/{SOCKET}")
    return {
        **dict.fromkeys(("ssh", "rsh", AGENT), _script(call)),
        _RANK_AGENT: _script(f"{call} --rank"),
        INPUT_AGENT: _INPUT.format(job=_JOB, rank=_RANK, first=_RANK_0, call=f"{call} --input"),
        "sshd": _WAIT,
        "hostname": _HOSTNAME.format(variable=STARTED_ON, name=shlex.quote(hostname)),
    }


def mpirun_programs(pod: str, hostname: str) -> dict[str, str]:
    """The stand-ins for Open MPI's programs."""
    variables = (",".join(OPEN_MPI.hostfile), ",".join(OPEN_MPI.rank_agent))
    call = _call("mpirun_wrapper.py", *variables, f"{pod}/bin/{_RANK_AGENT}", hostname)
    return dict.fromkeys(_MPIRUN, _script(f'{call} "$0"'))


def _call(program: str, *words: str) -> str:
    """The command that starts a program of ours quickly."""
    file = str(Path(__file__).with_name(program))
    return shlex.join([sys.executable, "-S", "-E", "-s", file, *words])


def _script(call: str) -> str:
    return f'#!/bin/sh\nexec {call} "$@"\n'


def is_sshd(argv: Sequence[str]) -> bool:
    """Whether a command line is an sshd and nothing else."""
    return bool(argv) and PurePosixPath(argv[0]).name == "sshd"


def without_sshd(argv: Sequence[str], stand_in: str) -> list[str]:
    """A command line whose shell script calls a stand-in where it would call sshd."""
    if len(argv) < 3 or PurePosixPath(argv[0]).name not in _SHELLS:
        return list(argv)
    words = list(argv)
    for index, word in enumerate(words[1:-1], start=1):
        if re.fullmatch(r"-[a-z]*c[a-z]*", word):
            words[index + 1] = _SSHD.sub(stand_in, words[index + 1])
            break
    return words


def is_open_mpi_launcher(variables: Mapping[str, str]) -> bool:
    """Whether a container has the hostfile of an Open MPI job."""
    return any(variables.get(name) for name in OPEN_MPI.hostfile)


def is_mpirun(argv: Sequence[str]) -> bool:
    """Whether a command line is an mpirun of Open MPI, and no script that calls one."""
    return bool(argv) and PurePosixPath(argv[0]).name in _MPIRUN


def can_give_input(argv: Sequence[str], declared: Mapping[str, str]) -> bool:
    """Whether an mpirun reads standard input for rank 0, and starts ranks as usual."""
    options, _ = split_options(list(argv[1:]))
    is_chosen = any(name == "stdin" for name, _, _ in options)
    return not is_chosen and not any(name in declared for name in OPEN_MPI.rank_agent)


def without_input(argv: Sequence[str]) -> list[str]:
    """The command line of an mpirun whose ranks read nothing, which needs no agent."""
    return [argv[0], "--stdin", "none", *argv[1:]]


def is_rank_0(variables: Mapping[str, str]) -> bool:
    """Whether a rank reads the input of its job."""
    return variables.get(_JOB, "").endswith(_RANK_0) and variables.get(_RANK) == "0"


def with_mpirun(
    argv: Sequence[str], variables: Mapping[str, str], directory: str
) -> tuple[list[str], dict[str, str]]:
    """A command line and its variables, changed to find the mpirun of a directory first."""
    words, path = list(argv), variables.get("PATH", "")
    program = PurePosixPath(words[0]) if words else PurePosixPath()
    if program.is_absolute() and program.name in _MPIRUN:
        words[0], path = f"{directory}/{program.name}", f"{program.parent}:{path}"
    return words, {**variables, "PATH": f"{directory}:{path}"}


def host_of_rank(variables: Mapping[str, str]) -> str:
    """The host to start a rank with these variables on; "" if they do not say."""
    hosts = variables.get(HOSTS, "").split(",")
    number = next((variables[name] for name in OPEN_MPI.rank if name in variables), "")
    return hosts[int(number) % len(hosts)] if number.isdecimal() else ""


def rank_environment(
    given: Mapping[str, str], own: Mapping[str, str], in_container: Callable[[str], str]
) -> dict[str, str]:
    """The variables of a rank, as on a cluster: those of its worker, and what `mpirun` adds.

    `in_container` translates paths of this machine to those that containers have. What Open MPI's
    processes tell each other is about this machine, and stays as it is.
    """
    left_out = {*given.get(LAUNCHER_ONLY, "").split(","), LAUNCHER_ONLY}
    added = {
        name: value if name.startswith(OPEN_MPI.inherited) else in_container(value)
        for name, value in given.items()
        if name.startswith(OPEN_MPI.inherited) or name not in left_out
    }
    return {**own, **added}
