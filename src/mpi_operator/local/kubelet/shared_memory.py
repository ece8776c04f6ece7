"""Shared memory without namespaces.

A pod in namespaces has a `/dev/shm` of its own. Without them all have the machine's, and what a
rank makes there stays when the rank is killed. So each pod gets a directory in it, and Open MPI is
told to use that. The run has a link to where the directories are, so that the next start can remove
them if this one cannot. MPICH cannot be told. Of what it makes, files of ours that no process has
open or mapped any more are removed: who makes one has it open at once, and then mapped.

    /dev/shm/mpi-operator-<run>/<pod>/      <run>/shm ──► /dev/shm/mpi-operator-<run>
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

_LINK = "shm"
_PREFIX = "mpi-operator-"
_MEMORY = Path("/dev/shm")  # noqa: S108
_MPICH = "mpich_shm_*"
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
            for path in _abandoned():
                path.unlink(missing_ok=True)


def _abandoned() -> set[Path]:
    """What MPICH has left, seen before it is asked who uses it."""
    found = {path for path in _MEMORY.glob(_MPICH) if _is_mine(path)}
    return found and found - _in_use()


def _is_mine(path: Path) -> bool:
    with suppress(FileNotFoundError):
        return path.stat().st_uid == os.getuid()
    return False


def _in_use() -> set[Path]:
    """The files that any process we may look at has open or mapped; it is opened first."""
    used = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is somebody else's
            used |= set(_open_files(process))
            lines = (process / "maps").read_text(errors="replace").splitlines()
            used |= {Path(line[line.index("/") :]) for line in lines if f" {_MEMORY}/" in line}
    return used


def _open_files(process: Path) -> Iterator[Path]:
    for each in (process / "fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            yield Path(os.readlink(each))
