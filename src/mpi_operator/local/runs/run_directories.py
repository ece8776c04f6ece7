"""The directories of runs, each owned by one process, so that no run outlives its owner for long.

    ${XDG_STATE_HOME:-~/.local/state}/mpi-operator/local/
        <run>/lock    held as long as its owner lives
              name    of its job
              …       the files of the run

The processes of a run end with their owner, however it ends (`sandbox.fork_server`). If the owner
was killed its files stay, and in the worst case (owner and fork server killed together, without
namespaces) so do processes. So every start cleans up first: a run whose lock is free has lost its
owner. It kills the processes with the name of such a run in their environment, moves the record to
the finished runs (`records.archive`) and removes the directory; it touches nothing else.
"""

import fcntl
import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path

from mpi_operator.local.kubelet import host_files
from mpi_operator.local.sandbox import process_tree
from mpi_operator.local.sandbox.process_tree import RUN_VARIABLE

from . import records, state_directory

_LOCK = "lock"
_CLAIM = "name"
_KILL_SECONDS = 10.0


class Run:
    """A run directory that this process owns."""

    def __init__(self, directory: Path, lock: int) -> None:
        self.directory = directory
        self._lock: int | None = lock

    def claim(self, name: str, *, is_free: bool) -> str:
        """Note the name of the job; if it is free to change, one that no other run has."""
        with _all_runs(self.directory.parent):
            taken = {_claimed(each) for each in self.directory.parent.glob("*/")}
            others = (f"{name}-{number}" for number in count(2))
            name = next(each for each in chain([name], others) if each not in taken or not is_free)
            (self.directory / _CLAIM).write_text(name)
        return name

    def end(self, *, is_clear: bool = False) -> None:
        """Remove the directory and kill processes that are left; safe to call twice.

        The search for processes takes time. `is_clear` skips it, if all of them have ended.
        """
        if self._lock is None:
            return
        with _all_runs(self.directory.parent):
            if not is_clear:
                _kill_marked(self.directory)
            _clear(self.directory)
        os.close(self._lock)
        self._lock = None


def _claimed(directory: Path) -> str:
    try:
        return (directory / _CLAIM).read_text()
    except OSError:
        return ""


def root(state: Path) -> Path:
    """The directory of active runs in a directory for state."""
    return state / "local"


def roots() -> list[Path]:
    """All directories of active runs of this user."""
    return [root(place) for place in state_directory.all_places()]


def directories() -> list[Path]:
    """The run directories. Some may have lost their owners, and do not answer at their socket."""
    return [run for runs in roots() for run in sorted(runs.glob("*/"))]


def create(runs: Path) -> Run:
    """Clean up after dead owners, then create a run that this process owns."""
    with _all_runs(runs):
        _reap(runs)
        directory = runs / f"{os.getpid()}-{os.urandom(2).hex()}"
        directory.mkdir(mode=0o700)
        lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)  # `is_owned` of another run may hold it for a moment
    return Run(directory, lock)


def reap(runs: Path) -> list[str]:
    """Remove the runs whose owners are dead, and return their names."""
    with _all_runs(runs):
        return _reap(runs)


def _reap(runs: Path) -> list[str]:
    return [entry.name for entry in sorted(runs.glob("*/")) if _remove_if_abandoned(entry)]


def _remove_if_abandoned(directory: Path) -> bool:
    if not (directory / _LOCK).exists():
        with suppress(OSError):
            directory.rmdir()  # its owner died before it made the lock; never delete anything else
        return False
    lock = _lock(directory / _LOCK)
    if lock is None:
        return False
    try:
        _kill_marked(directory)
        _clear(directory)
    finally:
        os.close(lock)
    return not directory.exists()


def _clear(directory: Path) -> None:
    host_files.remove(directory)
    records.archive(directory)
    # The lock goes last: a directory without one would never be removed.
    for entry in directory.iterdir():
        if entry.name != _LOCK:
            _remove(entry)
    shutil.rmtree(directory, ignore_errors=True)


def _remove(entry: Path) -> None:
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry, ignore_errors=True)
        if entry.exists():
            _make_accessible(entry)  # a job may have removed permissions of its own directories
            shutil.rmtree(entry, ignore_errors=True)
    else:
        entry.unlink(missing_ok=True)


def _make_accessible(directory: Path) -> None:
    for path, _, _ in os.walk(directory):
        for entry in os.scandir(path):
            if entry.is_dir(follow_symlinks=False):
                os.chmod(entry.path, 0o700)


def _kill_marked(directory: Path) -> None:
    deadline = time.monotonic() + _KILL_SECONDS
    while pids := list(_marked(directory)):
        for pid in pids:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return
        time.sleep(0.01)


def _marked(directory: Path) -> Iterator[int]:
    if Path("/proc/self/environ").exists():
        for pid in process_tree.parents():
            if pid != os.getpid() and process_tree.was_started_with(
                pid, RUN_VARIABLE, str(directory)
            ):
                yield pid


@contextmanager
def _all_runs(runs: Path) -> Iterator[None]:
    """Hold the lock under which processes create and remove runs."""
    runs.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(runs / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def is_owned(directory: Path) -> bool:
    """Whether the owner of a run lives."""
    try:
        lock = _lock(directory / _LOCK)
    except FileNotFoundError:  # it has just ended
        return False
    if lock is not None:
        os.close(lock)
    return lock is None


def _lock(path: Path) -> int | None:
    """Take the lock of a run; None if its owner has it, FileNotFoundError if there is none."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
