"""Which network the ranks of Open MPI use: loopback, unless the job chooses another one.

By default Open MPI uses all networks of the machine, and when one of them disappears (a VPN, a
network of containers), ranks wait for each other for ever. Loopback always exists and leads to all
pods. But Open MPI does not start where one setting includes networks and another excludes some. So
nothing is set where something looks like a choice: on the command line, in a variable, in a script
that the command line names, or in a configuration file of Open MPI.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mpi_operator.mpi_variables import OPEN_MPI

from .container_env import Tools

_FILE_NAME = "openmpi-mca-params.conf"
_MOST_BYTES = 1 << 16


def network_variables(
    argv: Sequence[str], variables: Mapping[str, str], directory: str, tools: Tools
) -> dict[str, str]:
    """What to add to the variables of a launcher of Open MPI."""
    if sys.platform != "linux":
        return {}  # the interface has another name there
    texts = (*argv, *variables, *variables.values())
    files = (*_scripts(argv, directory), *_configuration(variables, tools))
    if any(OPEN_MPI.network_choice in text for text in texts) or any(map(_has_choice, files)):
        return {}
    return dict(OPEN_MPI.launcher_loopback)


def _scripts(argv: Sequence[str], directory: str) -> Iterator[Path]:
    return (Path(directory, word) for word in argv if len(word) < 256 and "\0" not in word)


def _configuration(variables: Mapping[str, str], tools: Tools) -> Iterator[Path]:
    yield Path(variables["HOME"], ".openmpi/mca-params.conf")
    yield Path("/etc/openmpi", _FILE_NAME)
    for path in tools.path:
        yield path.parent / "etc" / _FILE_NAME


def _has_choice(path: Path) -> bool:
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            lines = file.read(_MOST_BYTES).splitlines()
    except OSError:
        return False
    choice = OPEN_MPI.network_choice.encode()
    return any(choice in line for line in lines if not line.lstrip().startswith(b"#"))
