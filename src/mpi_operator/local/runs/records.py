"""What is remembered of runs that have ended.

    ${XDG_STATE_HOME:-~/.local/state}/mpi-operator/
        local/<run>/record.json       of a run that goes on: what is known so far
        finished/<run>/record.json    of one that has ended: its objects as they were last
                      /logs/…         what its pods printed, the end of it where that was much
                      /pods/…         if asked for: their directories, with volumes

A run notes what it knows while it lives, so a killed one is remembered too: whoever cleans up after
it (`runs`) calls `keep`, as it would have done itself. Only the last runs are remembered, and only
for days; those that were to be kept stay until somebody deletes them. Secrets are never written.
"""

import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from mpi_operator.kube.resources import Manifest

from . import pod_logs

RUNS_KEPT = 20
DAYS_KEPT = 7
# Of a run. A few lines of each container are kept even if there are very many.
_LOG_BYTES = 16 << 20
_LEAST_LOG_BYTES = 64 << 10

_RECORD = "record.json"
_DAY = 86_400.0


class End(msgspec.Struct, frozen=True):
    """How a run ended, as its owner said."""

    state: str
    message: str
    exit_code: int


class Record(msgspec.Struct, frozen=True):
    """A run, as far as it is known."""

    objects: Sequence[Manifest]
    end: End | None = None  # None: it goes on, or its owner did not live to see the end


_encode = msgspec.json.Encoder().encode


def place(runs: Path) -> Path:
    """Where those are remembered that have ended, for the directory of those that go on."""
    return runs.parent / "finished"


def write(run: Path, record: Record) -> None:
    """Note what is known of a run. Whoever reads sees all of it, or what was noted before."""
    new = run / f"{_RECORD}.new"
    new.write_bytes(_encode(record))
    new.rename(run / _RECORD)


def read(run: Path) -> Record | None:
    """What is known of a run; None where that is nothing that can be read."""
    try:
        return msgspec.json.decode((run / _RECORD).read_bytes(), type=Record)
    except (OSError, msgspec.MsgspecError):
        return None


def erase(run: Path) -> None:
    """Have a run not be remembered."""
    (run / _RECORD).unlink(missing_ok=True)


def mark_kept(run: Path) -> None:
    """Have the directories of its pods be kept too."""
    (run / pod_logs.KEEP).touch()


def is_kept(run: Path) -> bool:
    return (run / pod_logs.KEEP).exists()


def finished(runs: Path) -> list[Path]:
    """The runs that are remembered, those that ended last first."""
    found = [entry for entry in place(runs).glob("*/") if (entry / _RECORD).exists()]
    return sorted(found, key=_ended, reverse=True)


def keep(run: Path) -> None:
    """Take what is to be remembered out of the directory of a run, which is about to go."""
    record = read(run)
    if record is not None:
        with suppress(OSError):  # a full disk, for example: not to be remembered is no disaster
            _move(run, record)
        _expire(run.parent, time.time())


def forget(run: Path) -> None:
    """Remove what is remembered of a run, and what was kept of it."""
    (run / _RECORD).unlink(missing_ok=True)  # first: nobody shall read half of it
    shutil.rmtree(run, ignore_errors=True)


def remembered(ends: Sequence[float], now: float) -> int:
    """How many of these runs, told by when they ended and the last first, are still remembered."""
    young = sum(now - end < DAYS_KEPT * _DAY for end in ends)
    return min(young, RUNS_KEPT)


def _move(run: Path, record: Record) -> None:
    target = place(run.parent) / run.name
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    pod_logs.collect(run, target / pod_logs.LOGS)
    if is_kept(run):
        _keep_pods(run, target, record)
    else:
        pod_logs.shorten(target / pod_logs.LOGS, _LOG_BYTES, _LEAST_LOG_BYTES)
    os.utime(run / _RECORD)  # it says when the run ended
    (run / _RECORD).rename(target / _RECORD)  # last: from now on it is there for others


def _keep_pods(run: Path, target: Path, record: Record) -> None:
    for pod in record.objects:
        for volume in (pod.get("spec") or {}).get("volumes") or ():
            if "secret" in volume or "projected" in volume:
                for made in (run / pod_logs.PODS).glob(f"*/volumes/{volume['name']}"):
                    shutil.rmtree(made, ignore_errors=True)
    # After that: what is moved stays, whoever dies now.
    with suppress(OSError):
        (run / pod_logs.PODS).rename(target / pod_logs.PODS)
    (target / pod_logs.KEEP).touch()


def _expire(runs: Path, now: float) -> None:
    """Forget what is old, and what was begun to be kept by somebody who died over it."""
    everything = sorted(place(runs).glob("*/"), key=_ended, reverse=True)
    known = [run for run in everything if not is_kept(run)]
    for run in known[remembered([_ended(each) for each in known], now) :]:
        forget(run)


def _ended(run: Path) -> float:
    try:
        return (run / _RECORD).stat().st_mtime
    except OSError:
        return 0.0  # forgotten meanwhile
