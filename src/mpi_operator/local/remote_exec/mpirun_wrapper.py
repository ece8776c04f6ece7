"""Stands in for Open MPI's `mpirun` where pods have no host names of their own (see `stand_ins`).

    mpirun_wrapper HOSTFILE_VARIABLES RANK_AGENT_VARIABLES RANK_AGENT HOST MPIRUN ARGUMENTS…

It finds the host of each rank as `mpirun` would: from `--hostfile`, `--host`, or the default
hostfile. Then it execs the real `mpirun` with a single host that has all slots, itself, and starts
each rank through the agent; the node reads in HOSTS which pod the rank belongs to. On a cluster a
rank does not get the variables of the launcher, unless `-x` says so; LAUNCHER_ONLY has the names of
those. If all ranks run on HOST, which is that of the launcher, `mpirun` needs no agent.

A program of its own that imports next to nothing, because it delays every start. So it is given the
names of variables (`mpi_variables`), separated by commas.
"""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence  # costs nothing: `os` has it loaded

HOSTS = "MPI_OPERATOR_HOSTS"
LAUNCHER_ONLY = "MPI_OPERATOR_LAUNCHER_ONLY"

_HOSTFILE = ("hostfile", "machinefile", "default-hostfile")
_HOST = ("host", "H")
# How many arguments an option takes, to find where the program begins.
OPTION_WORDS = dict.fromkeys(
    ("mca", "gmca", "omca", "gomca", "prtemca", "pmixmca", "gpmixmca"), 2
) | (
    dict.fromkeys(
        (
            *_HOSTFILE,
            *_HOST,
            *("n", "np", "c", "N", "npernode", "npersocket", "cpus-per-proc", "cpus-per-rank"),
            *("x", "wd", "wdir", "path", "prefix", "app", "tune", "am", "personality", "pset"),
            *("map-by", "rank-by", "bind-to", "rankfile", "rf", "cpu-set", "cpu-list", "ppr"),
            *("output", "output-filename", "display", "stdin", "xterm", "runtime-options", "rtos"),
            *("timeout", "spawn-timeout", "report-uri", "launch-agent", "preload-files", "tmpdir"),
            *("max-restarts", "ompi-server", "debugger", "dvm", "fwd-mpirun-port", "report-pid"),
        ),
        1,
    )
)


def split_options(words: list[str]) -> tuple[list[tuple[str, str, list[str]]], list[str]]:
    """The options of a command line as name, value and words; and the rest: the program."""
    options = list[tuple[str, str, list[str]]]()
    rest = list(words)
    while rest and rest[0].startswith("-"):
        name, has_value, value = rest[0].lstrip("-").partition("=")
        count = 1 if has_value else 1 + OPTION_WORDS.get(name, 0)
        option, rest = rest[:count], rest[count:]
        options.append((name, value if has_value else " ".join(option[1:]), option))
    return options, rest


def split_hosts(
    words: list[str], hostfile_variables: Sequence[str]
) -> tuple[dict[str, str], list[str]]:
    """What a command line says about hosts (`hostfile`, `host`), and the rest of it."""
    given: dict[str, str] = {}
    kept = list[str]()
    options, program = split_options(words)
    for name, value, option in options:
        kind = "hostfile" if name in _HOSTFILE else "host" if name in _HOST else ""
        if name == "x" and value.partition("=")[0] in hostfile_variables:
            continue  # horovodrun passes it to ranks, and mpirun is about to lose it
        if not kind:
            kept += option
        elif value:
            given[kind] = value
    return given, kept + program


def exported(words: list[str]) -> set[str]:
    """The variables that a command line passes to ranks."""
    return {value.partition("=")[0] for name, value, _ in split_options(words)[0] if name == "x"}


def hosts_of(hostfile: str) -> list[str]:
    """The host of each rank: hosts are filled one after the other, as mpirun does."""
    lines = (line.partition("#")[0].split() for line in hostfile.splitlines())
    return [host for words in lines if words for host in [words[0]] * _slots(words[1:])]


def hosts_named(names: str) -> list[str]:
    """The same for `--host a,b:2`."""
    parts = (name.partition(":") for name in names.split(",") if name)
    return [host for host, _, slots in parts for host in [host] * _count(slots)]


def _slots(words: Iterable[str]) -> int:
    return next((_count(word[6:]) for word in words if word.startswith("slots=")), 1)


def _count(text: str) -> int:
    return int(text) if text.isdecimal() else 1


def main(arguments: list[str]) -> None:
    """Turn into mpirun. Returns only if that is not possible."""
    hostfile_names, agent_names, agent, host, program, *words = arguments
    hostfile_variables = hostfile_names.split(",")
    name = os.path.basename(program)
    given, rest = split_hosts(words, hostfile_variables)
    try:
        hosts = (
            hosts_named(given["host"])
            if "host" in given
            else hosts_of(_hostfile(given, hostfile_variables))
        )
        mpirun = _next_on_path(name, os.path.dirname(os.path.realpath(program)))
        if not hosts:
            os.execv(mpirun, [name, *words])  # noqa: S606 — its own message says best what it lacks
        env = {name: value for name, value in os.environ.items() if name not in hostfile_variables}
        if {each.partition(".")[0] for each in hosts} != {host}:
            kept = {LAUNCHER_ONLY: ",".join(set(env) - exported(words)), HOSTS: ",".join(hosts)}
            env |= kept | dict.fromkeys(agent_names.split(","), agent)
        ours = ["--host", f"localhost:{len(hosts)}"]
        os.execve(mpirun, [name, *ours, *rest], env)  # noqa: S606
    except OSError as error:
        os.write(2, f"{name}: {error}\n".encode())


def _hostfile(given: Mapping[str, str], variables: Sequence[str]) -> str:
    names = (given.get("hostfile"), *(os.environ.get(name) for name in variables))
    path = next(filter(None, names), os.devnull)
    with open(path) as file:
        return file.read()


def _next_on_path(name: str, own: str) -> str:
    for directory in os.environ.get("PATH", os.defpath).split(":"):
        path = os.path.join(directory or ".", name)
        if os.path.realpath(directory or ".") != own and os.access(path, os.X_OK):
            return path
    raise FileNotFoundError(2, "not found in PATH")


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(127)
