"""Runs: which process owns which processes and files, so that nothing outlives its owner.

Every running cluster has a directory under `${XDG_STATE_HOME:-~/.local/state}`:

    mpi-operator/devcluster/<name>/lock        held by the owner for as long as it lives
                                   processes/  one record per process that was started
                                   detached    if present, it has no owner on purpose
                                   …           keys, logs and data of the cluster

A run whose lock is free and which is not detached has lost its owner. `reap` kills what such runs
recorded (by pid and start time) or what carries their name in its environment (a process that was
started but not recorded yet), and removes the directory and what `slot_cleanup` finds. Every start
reaps first: that is the guarantee. A small watchdog process per run waits for the same lock and so
reaps at once, even when the owner was killed; it needs no signal handlers in the owner, which is
often pytest.

Directories are created and removed only under one common lock, so any number of processes may do
so at once.
"""

import atexit
import json
import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from subprocess import SubprocessError

from devcluster import locks, process, slot_cleanup
from devcluster.process import Process, StillAlive

RUN_VARIABLE = "MPI_OPERATOR_RUN"
_WATCHDOG = "watchdog"


class NameTaken(Exception):
    """There is a run of this name already."""


class BadName(ValueError):
    """This cannot be the name of a run."""


class Run:
    """The directory and the processes of one cluster, owned by the process that holds its lock."""

    def __init__(self, directory: Path, lock: int) -> None:
        self.directory = directory
        self._lock: int | None = lock
        self._owner = os.getpid()
        self._children: dict[str, Process] = {}

    @property
    def name(self) -> str:
        return self.directory.name

    def start(self, name: str, argv: Sequence[str]) -> Process:
        """Start a program of this run and record it."""
        if predecessor := self._children.get(name):
            predecessor.kill()
        logs = self.directory / "logs"
        logs.mkdir(exist_ok=True)
        child = process.start(
            name,
            argv,
            directory=self.directory,
            env=self._environment(),
            log=logs / f"{name}.log",
        )
        self._children[name] = child
        _write_record(self.directory, child)
        return child

    def process(self, name: str) -> Process:
        """One of the programs of this run, started by this process or by an earlier owner."""
        if name in self._children:
            return self._children[name]
        return next(each for each in self.processes() if each.name == name)

    def record(self, found: Process) -> None:
        """Record a process that one of our programs has started."""
        _write_record(self.directory, found)

    def processes(self) -> list[Process]:
        """All recorded processes."""
        return recorded(self.directory)

    def detach(self) -> None:
        """Give up ownership but keep everything running, until `adopt` and `end`."""
        (self.directory / "detached").touch()
        if watchdog := self._children.get(_WATCHDOG):
            watchdog.kill()
            _record_file(self.directory, _WATCHDOG).unlink()
        for child in self._children.values():
            child.disown()
        self._release()

    def end(self) -> None:
        """Kill every process and remove the directory. Safe to call twice."""
        if self._lock is None or self._owner != os.getpid():  # a forked child owns nothing
            return
        with _all_runs(self.directory.parent):
            for child in self._children.values():
                child.kill()
            _destroy(self.directory)
        self._release()

    def _release(self) -> None:
        atexit.unregister(self.end)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _environment(self) -> dict[str, str]:
        # No other variables: etcd reads ETCD_* and every Go program reads proxy settings.
        return {
            "HOME": str(self.directory),
            # The tools of a node (ip, iptables, runc) are where only root looks by default.
            "PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin",
            # The watchdog is Python: it must find this package and the other runs.
            "PYTHONPATH": str(Path(__file__).parents[1]),
            "XDG_STATE_HOME": str(self.directory.parents[2]),
            # Less CPU while they start (20 to 28 % in two noisy pairs of measurements), for 150 MB
            # more of an API server.
            "GOGC": "400",
            RUN_VARIABLE: str(self.directory),
        }


def root() -> Path:
    """The directory of this user's runs."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state).absolute() / "mpi-operator" / "devcluster"


def create(name: str | None = None) -> Run:
    """Clean up after dead owners, then create a run that this process owns."""
    # A dot keeps unnamed runs apart from named ones.
    directory = root() / (checked_name(name) if name else f"{os.getpid()}.{secrets.token_hex(3)}")
    with _all_runs(root()):
        _reap()
        if directory.exists():
            raise NameTaken(f"{directory} exists: {name!r} is running. Take it down first.")
        directory.mkdir(mode=0o700)
        run = Run(directory, locks.wait_for_lock(directory / "lock"))
    atexit.register(run.end)
    run.start(_WATCHDOG, [sys.executable, "-S", "-m", "devcluster.watchdog", str(directory)])
    return run


def adopt(name: str) -> Run | None:
    """Take over a detached run, or None if there is none of this name."""
    directory = root() / checked_name(name)
    with _all_runs(root()):
        if not (directory / "detached").exists():
            return None
        lock = locks.try_lock(directory / "lock")
        if lock is None:
            raise NameTaken(f"{directory}: another process is working on {name!r}.")
        return Run(directory, lock)


def reap() -> list[str]:
    """Remove the runs whose owners are dead, and return their names."""
    with _all_runs(root()):
        return _reap()


def detached() -> list[Path]:
    """The directories of detached runs."""
    return [directory for directory in _directories() if (directory / "detached").exists()]


def recorded(directory: Path) -> list[Process]:
    """The processes on record in a run's directory."""
    return [
        Process.from_record(json.loads(file.read_text()))
        for file in sorted((directory / "processes").glob("*.json"))
    ]


def checked_name(name: str) -> str:
    """The name; BadName if it is invalid."""
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?", name):
        raise BadName(
            f"{name!r} is not a valid name: use up to 40 lower-case letters, digits and dashes."
        )
    return name


def _write_record(directory: Path, child: Process) -> None:
    file = _record_file(directory, child.name)
    file.parent.mkdir(exist_ok=True)
    partial = file.with_suffix(".partial")
    partial.write_text(json.dumps(child.to_record()))
    partial.rename(file)


def _record_file(directory: Path, name: str) -> Path:
    return directory / "processes" / f"{name}.json"


def _all_runs(directory: Path) -> AbstractContextManager[int]:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return locks.held(directory / ".lock")


def _directories() -> list[Path]:
    return sorted(root().glob("*/"))


def _reap() -> list[str]:
    return [directory.name for directory in _directories() if _destroy_if_abandoned(directory)]


def _destroy_if_abandoned(directory: Path) -> bool:
    if not (directory / "lock").exists():
        with suppress(OSError):
            directory.rmdir()  # its owner died before it made the lock; never delete anything else
        return False
    lock = locks.try_lock(directory / "lock")
    if lock is None:
        return False
    try:
        if (directory / "detached").exists():
            return False
        _destroy(directory)
        return True
    except (StillAlive, OSError, ValueError, SubprocessError):
        return False  # what another run left must not keep us from starting
    finally:
        os.close(lock)


def _destroy(directory: Path) -> None:
    for child in (*recorded(directory), *_unrecorded(directory)):
        if child.pid != os.getpid():  # this may be the watchdog
            child.kill()
    slot_cleanup.remove(directory)
    shutil.rmtree(directory, ignore_errors=True)
    # Something may have written a last file while the tree was being removed.
    if directory.exists():
        shutil.rmtree(directory)


def _unrecorded(directory: Path) -> Iterator[Process]:
    mark = f"{RUN_VARIABLE}={directory}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            vitals = process.vitals_of(int(entry.name))
            if vitals and mark in (entry / "environ").read_bytes().split(b"\0"):
                yield Process("unrecorded", [], int(entry.name), vitals.born, Path(os.devnull))
