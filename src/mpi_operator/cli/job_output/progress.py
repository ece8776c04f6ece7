"""The state of each pod while a job starts: a few lines that change in place on a terminal."""

import shutil
from collections.abc import Iterable, Sequence
from typing import TextIO

from mpi_operator.cli.format import counted

from .job_stream import PodChanged

_MAX_WORKERS = 8
_STATES = {"Pending": "starting", "Running": "running", "Succeeded": "done", "Failed": "failed"}
_HIDDEN = "Gone"


class Screen:
    """Lines on a terminal, replaced by the next ones."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._shown: Sequence[str] = ()

    def show(self, lines: Sequence[str]) -> None:
        if lines != self._shown:
            width = shutil.get_terminal_size().columns - 1  # a wrapped line would take two
            text = "".join(f"\x1b[2m{line[:width]}\x1b[0m\n" for line in lines)
            self._print(self._erasure() + text)
            self._shown = lines

    def clear(self) -> None:
        if self._shown:
            self._print(self._erasure())
            self._shown = ()

    def _erasure(self) -> str:
        return f"\x1b[{len(self._shown)}A\x1b[J" if self._shown else ""

    def _print(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def lines(pods: Iterable[PodChanged], *, has_whole_names: bool = False) -> list[str]:
    """One line per pod, and one for all workers beyond the first eight."""
    known = sorted((pod for pod in pods if pod.phase != _HIDDEN), key=_order)
    launchers = [pod for pod in known if pod.role != "worker"]
    workers = [pod for pod in known if pod.role == "worker"]
    shown = [*launchers, *workers[:_MAX_WORKERS]]
    names = [pod.name if has_whole_names else short(pod.name, pod.role) for pod in shown]
    width = max(map(len, names), default=0)
    rows = [f"  {name:{width}}  {_state(pod)}" for name, pod in zip(names, shown, strict=True)]
    more = workers[_MAX_WORKERS:]
    return [*rows, *([_summary(more)] if more else [])]


def short(pod: str, role: str) -> str:
    """The short name of a pod: its role, and its index if it is a worker."""
    index = _index(pod)
    return f"{role}-{index}" if role == "worker" and index is not None else role or pod


def _state(pod: PodChanged) -> str:
    state = _STATES.get(pod.phase, pod.phase)
    return f"{state}: {pod.detail.splitlines()[0]}" if pod.detail else state


def _summary(workers: Sequence[PodChanged]) -> str:
    running = sum(pod.phase == "Running" for pod in workers)
    return f"  {counted(len(workers), 'more worker')}, {running} running"


def _order(pod: PodChanged) -> tuple[str, int, str]:
    return pod.role, _index(pod.name) or 0, pod.name


def _index(pod: str) -> int | None:
    text = pod.rpartition("-")[2]
    return int(text) if text.isdecimal() else None
