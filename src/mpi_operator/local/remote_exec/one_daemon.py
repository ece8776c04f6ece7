"""Open MPI without namespaces: one daemon, whose ranks are handed to the workers one by one.

Its daemons tell hosts apart by `gethostname`. Without namespaces all pods have the machine's name,
and with several daemons of one name a job hangs. So a program of ours is found in the place of
`mpirun` (`local.lone_mpirun`): the real one then knows of one host, itself, and has each rank
started by an agent, in the sandbox of the worker where it belongs. MPICH and Intel MPI need none of
this. Ranks are placed slot by slot; options that ask for another order are not looked at.
"""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from .lone_mpirun import HOSTFILE_VARIABLES, HOSTS

PROGRAMS = ("mpirun", "mpiexec", "orterun")

_RANK_VARIABLES = ("PMIX_RANK", "OMPI_COMM_WORLD_RANK")


def is_launcher(variables: Mapping[str, str]) -> bool:
    """Whether a container is told of the hosts of an Open MPI job."""
    return any(variables.get(name) for name in HOSTFILE_VARIABLES)


def host_of(variables: Mapping[str, str]) -> str:
    """On which host a rank with these variables belongs; "" if nobody knows."""
    hosts = variables.get(HOSTS, "").split(",")
    number = next((variables[name] for name in _RANK_VARIABLES if name in variables), "")
    return hosts[int(number) % len(hosts)] if number.isdecimal() else ""


def redirected(
    argv: Sequence[str], variables: Mapping[str, str], directory: str
) -> tuple[list[str], dict[str, str]]:
    """A command line and its variables, with our programs found before those that they call."""
    words, path = list(argv), variables.get("PATH", "")
    program = PurePosixPath(words[0]) if words else PurePosixPath()
    if program.is_absolute() and program.name in PROGRAMS:
        words[0], path = f"{directory}/{program.name}", f"{program.parent}:{path}"
    return words, {**variables, "PATH": f"{directory}:{path}"}
