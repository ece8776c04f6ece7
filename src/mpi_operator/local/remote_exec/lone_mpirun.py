"""What calls Open MPI's `mpirun` where pods have no host names of their own (`pods/one_daemon`).

    lone_mpirun RANK_AGENT MPIRUN ARGUMENTS…

It finds out on which host each rank belongs, as `mpirun` would: from `--hostfile`, `--host`, or the
default hostfile. Then it turns into the real `mpirun`, which is told of one host with all slots,
itself, and starts each rank through the agent; the agent's node reads in HOSTS where it belongs.

A program of its own that imports next to nothing, because it delays every start.
"""

import os
import sys
from collections.abc import Iterable, Mapping  # costs nothing: `os` has it loaded

HOSTS = "MPI_OPERATOR_HOSTS"
HOSTFILE_VARIABLES = ("PRTE_MCA_prte_default_hostfile", "OMPI_MCA_orte_default_hostfile")
# What makes Open MPI 5 and 4 start ranks through a program.
AGENT_VARIABLES = ("PRTE_MCA_odls_base_exec_agent", "OMPI_MCA_orte_fork_agent")

_HOSTFILE = ("hostfile", "machinefile", "default-hostfile")
_HOST = ("host", "H")
# How many words belong to an option: without this nobody knows where the program begins.
_WORDS = dict.fromkeys(("mca", "gmca", "omca", "gomca", "prtemca", "pmixmca", "gpmixmca"), 2) | (
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


def parted(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """What a command line says about hosts (`hostfile`, `host`), and the rest of it."""
    said: dict[str, str] = {}
    kept, rest = list[str](), list(words)
    while rest and rest[0].startswith("-"):
        name, has_value, value = rest[0].lstrip("-").partition("=")
        count = 1 if has_value else 1 + _WORDS.get(name, 0)
        option, rest = rest[:count], rest[count:]
        kind = "hostfile" if name in _HOSTFILE else "host" if name in _HOST else ""
        if option[0].lstrip("-") == "x" and option[-1].partition("=")[0] in HOSTFILE_VARIABLES:
            continue  # passed on to ranks by horovodrun, and about to be gone
        if not kind:
            kept += option
        elif has_value or len(option) > 1:
            said[kind] = value if has_value else option[1]
    return said, kept + rest


def hosts_of(hostfile: str) -> list[str]:
    """The host of each rank, filled up one after the other as mpirun does."""
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


def environment_for(variables: Mapping[str, str], hosts: list[str], agent: str) -> dict[str, str]:
    """What mpirun needs: nothing about other hosts, and who starts ranks on them."""
    kept = {name: value for name, value in variables.items() if name not in HOSTFILE_VARIABLES}
    return kept | {HOSTS: ",".join(hosts)} | dict.fromkeys(AGENT_VARIABLES, agent)


def main(arguments: list[str]) -> None:
    """Turn into mpirun. Returns only where that is not possible."""
    agent, program, *words = arguments
    name = os.path.basename(program)
    said, rest = parted(words)
    try:
        hosts = hosts_named(said["host"]) if "host" in said else hosts_of(_hostfile(said))
        mpirun = _next_on_path(name, os.path.dirname(os.path.realpath(program)))
        if not hosts:
            os.execv(mpirun, [name, *words])  # noqa: S606 — it says best what it lacks
        ours = ["--host", f"localhost:{len(hosts)}"]
        os.execve(mpirun, [name, *ours, *rest], environment_for(os.environ, hosts, agent))  # noqa: S606
    except OSError as error:
        os.write(2, f"{name}: {error}\n".encode())


def _hostfile(said: Mapping[str, str]) -> str:
    names = (said.get("hostfile"), *(os.environ.get(name) for name in HOSTFILE_VARIABLES))
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
