"""Runs: whose processes and files are whose, so that nothing outlives its owner for long.

    ${XDG_STATE_HOME:-~/.local/state}/mpi-operator/local/
        <run>/lock    held for as long as its owner lives
              …       all that belongs to it

What is to be remembered of a run when it has ended goes elsewhere first (`records`).

The processes of a run end with their owner, however it ends (`sandbox.warden`). Its files stay when
the owner was killed, and in the worst case (owner and warden killed together, no namespaces) so do
processes. So every start cleans up first: a run whose lock is free has lost its owner. What carries
the name of such a run in its environment is killed, and its directory removed; nothing else is.
"""

import fcntl
import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mpi_operator.local.kubelet import mountpoints, shared_memory
from mpi_operator.local.sandbox import process_tree
from mpi_operator.local.sandbox.marks import RUN_VARIABLE

from . import records

_LOCK = "lock"
_KILL_SECONDS = 10.0


class Run:
    """A directory that this process owns."""

    def __init__(self, directory: Path, lock: int) -> None:
        self.directory = directory
        self._lock: int | None = lock

    def end(self, *, is_clear: bool = False) -> None:
        """Remove everything. Safe to call twice.

        Its processes are looked for, for whoever ended by accident may have left some. Who has
        seen them end (`is_clear`) need not wait for that.
        """
        if self._lock is None:
            return
        with _all_runs(self.directory.parent):
            if not is_clear:
                _kill_marked(self.directory)
            _clear(self.directory)
        os.close(self._lock)
        self._lock = None


def root() -> Path:
    """Where the runs of this user live."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state).absolute() / "mpi-operator" / "local"


def directories(runs: Path | None = None) -> list[Path]:
    """The runs there are. Some may have lost their owners: those answer nobody (`remote`)."""
    return sorted((runs or root()).glob("*/"))


def create(runs: Path | None = None) -> Run:
    """Clean up after dead owners, then begin a run that this process owns."""
    runs = runs or root()
    with _all_runs(runs):
        _reap(runs)
        directory = runs / f"{os.getpid()}-{os.urandom(2).hex()}"
        directory.mkdir(mode=0o700)
        lock = _lock(directory / _LOCK)
    assert lock is not None, "nobody else knows of this directory yet"
    return Run(directory, lock)


def reap(runs: Path | None = None) -> list[str]:
    """Remove the runs whose owners are dead, and say which those were."""
    runs = runs or root()
    with _all_runs(runs):
        return _reap(runs)


def _reap(runs: Path) -> list[str]:
    return [entry.name for entry in sorted(runs.glob("*/")) if _is_abandoned_and_gone(entry)]


def _is_abandoned_and_gone(directory: Path) -> bool:
    if not (directory / _LOCK).exists():
        with suppress(OSError):
            directory.rmdir()  # one that died before its first file; nothing else is ours to delete
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
    mountpoints.remove(directory)
    shared_memory.remove(directory)
    records.keep(directory)
    # The lock goes last: without it nobody would dare to remove the rest.
    for entry in directory.iterdir():
        if entry.name != _LOCK:
            _remove(entry)
    shutil.rmtree(directory, ignore_errors=True)


def _remove(entry: Path) -> None:
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry, ignore_errors=True)
        if entry.exists():
            _open_up(entry)  # a job may have left directories that even their owner may not enter
            shutil.rmtree(entry, ignore_errors=True)
    else:
        entry.unlink(missing_ok=True)


def _open_up(directory: Path) -> None:
    for path, _, _ in os.walk(directory):
        for entry in os.scandir(path):
            if entry.is_dir(follow_symlinks=False):
                os.chmod(entry.path, 0o700)


def _kill_marked(directory: Path) -> None:
    mark = f"{RUN_VARIABLE}={directory}".encode()
    deadline = time.monotonic() + _KILL_SECONDS
    while pids := list(_marked(mark)):
        for pid in pids:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return
        time.sleep(0.01)


def _marked(mark: bytes) -> Iterator[int]:
    if Path("/proc/self/environ").exists():
        for pid in process_tree.parents():
            if pid != os.getpid() and process_tree.has_in_environment(pid, mark):
                yield pid


@contextmanager
def _all_runs(runs: Path) -> Iterator[None]:
    """One process at a time may make or remove runs."""
    runs.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(runs / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _lock(path: Path) -> int | None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
