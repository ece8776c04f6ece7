"""The log directories of pods, which outlive the pods so that users can read them later.

    <run>/pods/<number>-<name>/logs/<container>/<start>.log     of a pod
    <run>/gone/<number>-<name>/<container>/<start>.log          of a deleted pod
    <run>/keep                                                  if present, no pod is removed

Directory names are shortened, so each log directory has a file with the name of its pod.
"""

import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from . import log_times

KEEP = "keep"
LOGS = "logs"
HOME = "pod"  # what containers see as `/.pod`
TRUNCATED = b"[the beginning of this log was truncated]"
PODS = "pods"
_GONE = "gone"
_POD_NAME = ".pod"  # no container can have this name


def create(pod_directory: Path, pod: str) -> None:
    """Create the log directory of a pod."""
    logs = pod_directory / LOGS
    logs.mkdir(parents=True, exist_ok=True)
    (logs / _POD_NAME).write_text(pod)


def directory_of(run: Path, pod: str) -> Path | None:
    """The directory of the last pod of this name that has not been deleted."""
    owned = [each for each in (run / PODS).glob("*/") if _pod_name(each / LOGS) == pod]
    return max(owned, key=lambda each: int(each.name.partition("-")[0]), default=None)


def remove_pod(pod_directory: Path) -> None:
    """Remove the directory of a deleted pod, but keep its logs."""
    run = pod_directory.parent.parent
    if (run / KEEP).exists():
        return
    with suppress(OSError):
        (run / _GONE).mkdir(exist_ok=True)
        (pod_directory / LOGS).rename(run / _GONE / pod_directory.name)
    shutil.rmtree(pod_directory, ignore_errors=True)


def collect(run: Path, target: Path) -> None:
    """Move all logs of a run to `target`, one directory per pod."""
    target.mkdir(parents=True, exist_ok=True)
    for logs in _directories(run):
        with suppress(OSError):
            logs.rename(target / _directory_name(logs))


def delete(run: Path, pods: Collection[str]) -> None:
    """Delete the logs and the directories of pods that have ended, also in a finished run."""
    for logs in (*_directories(run), *(run / LOGS).glob("*")):
        if _pod_name(logs) in pods:
            for parent in (PODS, _GONE, LOGS):
                shutil.rmtree(run / parent / _directory_name(logs), ignore_errors=True)


def newest(collected: Path, pod: str, container: str) -> Path | None:
    """The collected log of the last start of a container."""
    owned = [each for each in collected.glob("*/") if _pod_name(each) == pod]
    starts = (file for each in owned for file in (each / container).glob("*.log"))
    return max(starts, key=_order, default=None)


def truncate(collected: Path, total_bytes: int, minimum: int) -> None:
    """Drop the beginning of long logs so that all fit; each keeps at least `minimum` bytes."""
    files = list(collected.glob("*/*/*.log"))
    limit = max(total_bytes // max(len(files), 1), minimum)
    for file in files:
        if file.stat().st_size > limit:
            _keep_end(file, limit)


def _keep_end(file: Path, size: int) -> None:
    history, before = log_times.saved(file), file.stat().st_size
    shorter = file.with_suffix(".part")
    with file.open("rb") as whole, shorter.open("wb") as part:
        whole.seek(-size, os.SEEK_END)
        whole.readline()  # start with a whole line
        part.write(TRUNCATED + b"\n")
        part.write(whole.read(size))
    shorter.rename(file)
    history.shifted(before - file.stat().st_size).save()


def _directories(run: Path) -> Iterator[Path]:
    yield from (run / PODS).glob(f"*/{LOGS}")
    yield from (run / _GONE).glob("*")


def _directory_name(logs: Path) -> str:
    return logs.parent.name if logs.name == LOGS else logs.name


def _pod_name(directory: Path) -> str:
    try:
        return (directory / _POD_NAME).read_text()
    except OSError:
        return ""


def _order(file: Path) -> tuple[int, int]:
    """The number of the pod, then the number of the container's start."""
    return int(file.parents[1].name.partition("-")[0]), int(file.stem)
