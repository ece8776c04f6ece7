"""What the pods of a run need on this machine outside the run's directory.

Both kinds are recorded in the run, so that the next start can remove them if this one is killed.

*Mount points.* A sandbox covers a directory that lacks a mount point (`sandbox/rootfs`), and what
is then written into that directory is lost with the pod. That is right for `/etc`; it would be
wrong for the user's home and for the directory of the job. There the mount point is really made,
as an empty directory. Runs that need the same one hold a shared lock on it, and the last of them
removes it: without it a pod that starts would fail, and one that runs would lose its mount.

*Shared memory.* A pod in namespaces has a `/dev/shm` of its own. Without namespaces all pods share
the machine's, and what a killed rank made there stays. So each pod gets a directory in it, which
Open MPI is configured to use. MPICH has no such setting. Its files are removed if they belong to
this user and no process has them open or mapped: MPICH creates and opens a file, then maps it.

    /dev/shm/mpi-operator-<run>/<pod>/      <run>/shm ──► /dev/shm/mpi-operator-<run>

Without namespaces, paths of containers are also translated in the text of commands. What they
become must not have spaces or mean something to a shell. So links lead to such directories.
"""

import fcntl
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_MOUNT_POINTS = "mountpoints"
_LINK = "shm"
_PREFIX = "mpi-operator-"
_MEMORY = Path("/dev/shm")  # noqa: S108
_MPICH = "mpich_shm_*"
_WORD = re.compile(r"[\w./+@%-]+")


class MountPoints:
    """Makes mount points in directories that pods share with the user, and keeps them."""

    def __init__(self, run: Path, shared: Sequence[Path]) -> None:
        self._run = run
        self._shared = [directory.resolve() for directory in shared]
        self._held: dict[Path, int] = {}

    def make(self, targets: Iterable[str]) -> None:
        """Make those mount points without which a shared directory would be covered."""
        for target in map(Path, targets):
            place = Path(os.path.realpath(target))
            parent = (_missing(place) or [place])[-1].parent
            if place not in self._held and self._is_shared(parent):
                with suppress(OSError), _locked(parent):  # a directory we may not write is covered
                    self._make(place)

    def _make(self, place: Path) -> None:
        needed = _missing(place) or ([place] if _is_held(place) else [])
        if not needed:
            return  # it is the user's own
        with (self._run / _MOUNT_POINTS).open("a") as record:
            record.writelines(f"{each}\n" for each in needed)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._held[place] = _lock(place, fcntl.LOCK_SH)

    def close(self) -> None:
        """Let the last run that needs a mount point remove it."""
        for descriptor in self._held.values():
            os.close(descriptor)
        self._held.clear()

    def _is_shared(self, directory: Path) -> bool:
        return any(
            directory == shared or (shared != Path("/") and shared in directory.parents)
            for shared in self._shared
        ) and os.access(directory, os.W_OK)


def make_shared_memory(run: Path, pod: str) -> Path | None:
    """Make the shared memory directory of a pod; None if the machine has no /dev/shm."""
    if not os.access(_MEMORY, os.W_OK):
        return None
    place = _MEMORY / f"{_PREFIX}{run.name}"
    with suppress(FileExistsError):
        (run / _LINK).symlink_to(place)
    place.mkdir(mode=0o700, exist_ok=True)
    (place / pod).mkdir(exist_ok=True)
    return place / pod


def pod_link(pod: Path, shared_memory: Path | None) -> Path | None:
    """A link to the directory of a pod if its path is not one word, where MPIs split commands."""
    if shared_memory is None or is_word(pod):
        return None
    link = shared_memory / "pod"
    link.symlink_to(pod, target_is_directory=True)
    return link


def as_word(path: Path, links: Path, name: str) -> Path:
    """The path, or a link of this name to it if the path is not one word."""
    if is_word(path):
        return path
    links.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        (links / name).symlink_to(path)
    return links / name


def is_word(path: Path) -> bool:
    """Whether a path may stand in the text of any command and means itself, without quotes.

    Separators of lists of paths are excluded too.
    """
    return _WORD.fullmatch(str(path)) is not None


def remove(run: Path) -> None:
    """Remove all that a run made outside its directory. Safe to call twice."""
    _remove_mount_points(run)
    _remove_shared_memory(run)


def _remove_mount_points(run: Path) -> None:
    with suppress(OSError):
        for line in (run / _MOUNT_POINTS).read_text().splitlines():
            place = Path(line)
            # Not if something is in it, or another run needs it.
            with suppress(OSError), _locked(place.parent), _locked(place, fcntl.LOCK_NB):
                place.rmdir()


def _missing(place: Path) -> list[Path]:
    """The directories to make for a path, from the innermost."""
    return [each for each in (place, *place.parents) if not os.path.exists(each)]


@contextmanager
def _locked(directory: Path, flag: int = 0) -> Iterator[None]:
    descriptor = _lock(directory, fcntl.LOCK_EX | flag)
    try:
        yield
    finally:
        os.close(descriptor)


def _is_held(directory: Path) -> bool:
    try:
        with _locked(directory, fcntl.LOCK_NB):
            return False
    except BlockingIOError:
        return True


def _lock(directory: Path, kind: int) -> int:
    """Lock a directory if its file system has locks; BlockingIOError if another run holds it."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, kind)
    except BlockingIOError:
        os.close(descriptor)
        raise
    except OSError:
        pass
    return descriptor


def _remove_shared_memory(run: Path) -> None:
    with suppress(OSError):
        place = Path(os.readlink(run / _LINK))
        # A process of the run could have changed the link, so its target is checked.
        if place == _MEMORY / f"{_PREFIX}{run.name}":
            shutil.rmtree(place, ignore_errors=True)
            for path in _abandoned():
                path.unlink(missing_ok=True)


def _abandoned() -> set[Path]:
    """MPICH files that no process uses. Listed first: a file made meanwhile is not in the list."""
    found = {path for path in _MEMORY.glob(_MPICH) if _is_mine(path)}
    return found and found - _in_use()


def _is_mine(path: Path) -> bool:
    with suppress(FileNotFoundError):
        return path.stat().st_uid == os.getuid()
    return False


def _in_use() -> set[Path]:
    """The files that any process we may inspect has open or mapped."""
    used = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or belongs to another user
            used |= set(_open_files(process))
            lines = (process / "maps").read_text(errors="replace").splitlines()
            used |= {Path(line[line.index("/") :]) for line in lines if f" {_MEMORY}/" in line}
    return used


def _open_files(process: Path) -> Iterator[Path]:
    for each in (process / "fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            yield Path(os.readlink(each))
