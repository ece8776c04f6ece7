"""Shared memory without namespaces.

A pod in namespaces has a `/dev/shm` of its own. Without them all have the machine's, and what a
rank makes there stays when the rank is killed. So each pod gets a directory in it, and Open MPI is
told to use that. The run has a link to where the directories are, so that the next start can remove
them if this one cannot. MPICH cannot be told: of ranks that are killed, `mpich_shm_…` stays.

    /dev/shm/mpi-operator-<run>/<pod>/      <run>/shm ──► /dev/shm/mpi-operator-<run>
"""

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_LINK = "shm"
_PREFIX = "mpi-operator-"
_MEMORY = Path("/dev/shm")  # noqa: S108
_VARIABLES = tuple(
    f"OMPI_MCA_{part}_backing_directory" for part in ("btl_sm", "btl_vader", "osc_sm", "osc_rdma")
)


def make(run: Path, pod: str) -> Path | None:
    """The directory of a pod; None where the machine has no such memory."""
    if not os.access(_MEMORY, os.W_OK):
        return None
    place = _MEMORY / f"{_PREFIX}{run.name}"
    with suppress(FileExistsError):
        (run / _LINK).symlink_to(place)
    place.mkdir(mode=0o700, exist_ok=True)
    (place / pod).mkdir(exist_ok=True)
    return place / pod


def variables(directory: Path, declared: Mapping[str, str]) -> dict[str, str]:
    """What makes an MPI use it, unless its container says what it should use."""
    return {name: str(directory) for name in _VARIABLES if name not in declared}


def remove(run: Path) -> None:
    """Remove what the pods of a run have left. Safe to call twice."""
    with suppress(OSError):
        place = Path(os.readlink(run / _LINK))
        # A link may have been made by anybody who could write there, so it is not believed blindly.
        if place == _MEMORY / f"{_PREFIX}{run.name}":
            shutil.rmtree(place, ignore_errors=True)
