"""What each run of this user holds of the machine, so that runs do not count a CPU twice.

    <runs>/<run>/resources.json     what a run holds; counts for as long as its owner lives
    <runs>/../.resources.lock       held while a run decides what fits

Nothing has to be cleaned up after a killed run: the lock of its directory is free, so that what is
written there no longer counts.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path

import msgspec

from mpi_operator.local.kubelet.allocator import Holding

from . import run_directories

_FILE = "resources.json"
_LOCK = ".resources.lock"


class _Stored(msgspec.Struct, frozen=True):
    amounts: dict[str, str]
    gpus: list[str]
    groups: list[str]


class ResourceLedger:
    """The `Ledger` of a run."""

    def __init__(self, run: Path) -> None:
        self._run = run

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        path = self._run.parent.parent / _LOCK
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def others(self) -> list[Holding]:
        runs = (run for run in self._run.parent.glob("*/") if run != self._run)
        found = (_read(run) for run in runs if run_directories.is_owned(run))
        return sorted((each for each in found if each is not None), key=lambda each: each.run)

    def write(self, holding: Holding) -> None:
        amounts = {name: str(size) for name, size in holding.amounts.items()}
        stored = _Stored(amounts, [*holding.gpus], [*holding.groups])
        new = self._run / f"{_FILE}.new"
        with suppress(OSError):  # a full disk must not end a job
            new.write_bytes(msgspec.json.encode(stored))
            new.rename(self._run / _FILE)


def _read(run: Path) -> Holding | None:
    """What a run holds; None if it holds nothing."""
    try:
        stored = msgspec.json.decode((run / _FILE).read_bytes(), type=_Stored)
        amounts = {name: Fraction(size) for name, size in stored.amounts.items()}
    except (OSError, ValueError):  # it has just ended
        return None
    return Holding(amounts, stored.gpus, stored.groups, run.name)
