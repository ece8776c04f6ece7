"""What stays of pods that are gone: their logs, for people ask for them when all is over.

    <run>/pods/<number>-<name>/logs/<container>/<start>.log     of a pod
    <run>/gone/<number>-<name>/<container>/<start>.log          of one that was deleted
    <run>/keep                                                  nothing of any pod is removed

Names of directories are shortened, so each directory of logs says in a file whose it is.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

KEEP = "keep"
LOGS = "logs"
PODS = "pods"
_GONE = "gone"
_POD = ".pod"  # no container has such a name


def sign(pod_directory: Path, pod: str) -> None:
    """Say whose logs these are."""
    logs = pod_directory / LOGS
    logs.mkdir(parents=True, exist_ok=True)
    (logs / _POD).write_text(pod)


def clear(pod_directory: Path) -> None:
    """Remove the directory of a pod that is gone; its logs stay."""
    run = pod_directory.parent.parent
    if (run / KEEP).exists():
        return
    with suppress(OSError):
        (run / _GONE).mkdir(exist_ok=True)
        (pod_directory / LOGS).rename(run / _GONE / pod_directory.name)
    shutil.rmtree(pod_directory, ignore_errors=True)


def collect(run: Path, place: Path) -> None:
    """Move all logs of a run to another place, a directory for each pod."""
    place.mkdir(parents=True, exist_ok=True)
    for logs in _directories(run):
        name = logs.parent.name if logs.name == LOGS else logs.name
        with suppress(OSError):
            logs.rename(place / name)


def newest(place: Path, pod: str, container: str) -> Path | None:
    """Of collected logs, that of the last start of a container."""
    owned = [each for each in place.glob("*/") if _owner(each) == pod]
    starts = (file for each in owned for file in (each / container).glob("*.log"))
    return max(starts, key=_place, default=None)


def shorten(place: Path, budget: int, least: int) -> None:
    """Cut what is too long of collected logs; what was printed last is what stays."""
    files = list(place.glob("*/*/*.log"))
    longest = max(budget // max(len(files), 1), least)
    for file in files:
        if file.stat().st_size > longest:
            _cut(file, longest)


def _cut(file: Path, size: int) -> None:
    shorter = file.with_suffix(".part")
    with file.open("rb") as whole, shorter.open("wb") as part:
        whole.seek(-size, os.SEEK_END)
        whole.readline()  # begin with a whole line
        part.write(b"[the beginning was too long to be kept]\n")
        part.write(whole.read(size))
    shorter.rename(file)


def _directories(run: Path) -> Iterator[Path]:
    yield from (run / PODS).glob(f"*/{LOGS}")
    yield from (run / _GONE).glob("*")


def _owner(directory: Path) -> str:
    try:
        return (directory / _POD).read_text()
    except OSError:
        return ""


def _place(file: Path) -> tuple[int, int]:
    """The number of the pod, and of the start of the container."""
    return int(file.parents[1].name.partition("-")[0]), int(file.stem)
