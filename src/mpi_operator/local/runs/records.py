"""Records of runs, which `mpijob list`, `describe` and `logs` show after a run has ended.

    ${XDG_STATE_HOME:-~/.local/state}/mpi-operator/
        local/<run>/record.json       of an active run: its objects so far
        finished/<run>/record.json    of a finished run: its objects as they were last
                      /logs/…         the logs of its pods, truncated if they are long
                      /pods/…         with --keep: the directories of its pods, with volumes

An active run keeps its record up to date, so a killed one has a record too, which the next clean-up
(`run_directories`) archives. Records are deleted after a few days, and when there are many; those
of runs with --keep stay until the user deletes them. Secrets are never written.
"""

import os
import shutil
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from mpi_operator.kube.resources import Manifest
from mpi_operator.local.kubelet import pod_logs

RUNS_KEPT = 20
DAYS_KEPT = 7
# For all logs of a run; but each container keeps its minimum, however many there are.
_LOG_BYTES = 16 << 20
_MIN_LOG_BYTES = 64 << 10

_RECORD = "record.json"
_DAY = 86_400.0


class End(msgspec.Struct, frozen=True):
    """How a job ended, as its `mpijob run` reported it."""

    state: str
    message: str
    exit_code: int
    cause: str = ""
    """Why it failed, if its output says so."""


class Record(msgspec.Struct, frozen=True):
    """The objects of a run, and how each of its jobs ended."""

    objects: Sequence[Manifest]
    ends: Mapping[str, End] = {}
    """By the names of the jobs. One that is missing is active, or its run was killed."""


_encode = msgspec.json.Encoder().encode


def finished_directory(runs: Path) -> Path:
    """The directory of finished runs that belongs to a directory of active ones."""
    return runs.parent / "finished"


def write(run: Path, record: Record) -> None:
    """Write the record of a run, atomically."""
    new = run / f"{_RECORD}.new"
    new.write_bytes(_encode(record))
    new.rename(run / _RECORD)


def read(run: Path) -> Record | None:
    """The record of a run; None if there is none, or it cannot be read."""
    try:
        return msgspec.json.decode((run / _RECORD).read_bytes(), type=Record)
    except (OSError, msgspec.MsgspecError):
        return None


def discard(run: Path) -> None:
    """Remove the record of an active run, so that it is not archived."""
    (run / _RECORD).unlink(missing_ok=True)


def mark_kept(run: Path) -> None:
    """Archive the directories of the pods of a run too (`--keep`)."""
    (run / pod_logs.KEEP).touch()


def is_kept(run: Path) -> bool:
    return (run / pod_logs.KEEP).exists()


def finished(roots: Iterable[Path]) -> list[Path]:
    """The directories of finished runs with a record, the latest first."""
    entries = (entry for runs in roots for entry in finished_directory(runs).glob("*/"))
    found = [entry for entry in entries if (entry / _RECORD).exists()]
    return sorted(found, key=_ended, reverse=True)


def archive(run: Path) -> None:
    """Move the record and the logs of a run out of its directory, which is about to be removed."""
    record = read(run)
    if record is not None:
        with suppress(OSError):  # such as a full disk: a lost record must not fail the clean-up
            _move(run, record)
        _expire(run.parent, time.time())


def reduce(run: Path, record: Record, pods: Collection[str]) -> None:
    """Replace the record of a finished run by a smaller one, without the files of these pods."""
    ended = _ended(run)
    write(run, record)
    os.utime(run / _RECORD, (ended, ended))
    pod_logs.delete(run, pods)


def delete(run: Path) -> None:
    """Delete the record of a finished run and everything kept with it."""
    (run / _RECORD).unlink(missing_ok=True)  # first, so that no reader finds half of it
    shutil.rmtree(run, ignore_errors=True)


def retained(ends: Sequence[float], now: float) -> int:
    """How many of the runs that ended at these times, latest first, are still retained."""
    young = sum(now - end < DAYS_KEPT * _DAY for end in ends)
    return min(young, RUNS_KEPT)


def _move(run: Path, record: Record) -> None:
    target = finished_directory(run.parent) / run.name
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    pod_logs.collect(run, target / pod_logs.LOGS)
    if is_kept(run):
        _keep_pods(run, target, record)
    else:
        pod_logs.truncate(target / pod_logs.LOGS, _LOG_BYTES, _MIN_LOG_BYTES)
    os.utime(run / _RECORD)  # its time is when the run ended
    (run / _RECORD).rename(target / _RECORD)  # last: this makes the run visible


def _keep_pods(run: Path, target: Path, record: Record) -> None:
    for pod in record.objects:
        for volume in (pod.get("spec") or {}).get("volumes") or ():
            if "secret" in volume or "projected" in volume:
                for directory in (run / pod_logs.PODS).glob(f"*/volumes/{volume['name']}"):
                    shutil.rmtree(directory, ignore_errors=True)
    # Only now, without secrets: what is moved stays even if this process is killed.
    with suppress(OSError):
        (run / pod_logs.PODS).rename(target / pod_logs.PODS)
    (target / pod_logs.KEEP).touch()


def _expire(runs: Path, now: float) -> None:
    """Delete old records, and those that a killed process left incomplete."""
    finished = sorted(finished_directory(runs).glob("*/"), key=_ended, reverse=True)
    expiring = [run for run in finished if not is_kept(run)]
    for run in expiring[retained([_ended(each) for each in expiring], now) :]:
        delete(run)


def _ended(run: Path) -> float:
    try:
        return (run / _RECORD).stat().st_mtime
    except OSError:
        return 0.0  # incomplete, or deleted meanwhile
