"""Who is how far, while a job starts: a few lines that change in place on a terminal."""

import shutil
from collections.abc import Iterable, Sequence
from typing import TextIO

from .job_stream import PodChanged

_MOST_WORKERS = 8
_WORDS = {"Pending": "is starting", "Running": "runs", "Succeeded": "is done", "Failed": "failed"}
_HIDDEN = "Gone"


class Screen:
    """Lines on a terminal that are replaced by the next ones."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._shown: Sequence[str] = ()

    def show(self, lines: Sequence[str]) -> None:
        if lines != self._shown:
            width = shutil.get_terminal_size().columns - 1  # one that wraps would take two
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


def lines(pods: Iterable[PodChanged]) -> list[str]:
    """A line for each pod, or a last one for all that are too many."""
    known = sorted((pod for pod in pods if pod.phase != _HIDDEN), key=_place)
    launchers = [pod for pod in known if pod.role != "worker"]
    workers = [pod for pod in known if pod.role == "worker"]
    shown = [*launchers, *workers[:_MOST_WORKERS]]
    width = max((len(short(pod.name, pod.role)) for pod in shown), default=0)
    rows = [f"  {short(pod.name, pod.role):{width}}  {_word(pod)}" for pod in shown]
    more = workers[_MOST_WORKERS:]
    return [*rows, *([_rest(more)] if more else [])]


def short(pod: str, role: str) -> str:
    """A pod in few letters: its role, and its number where it has one."""
    number = _number(pod)
    return f"{role}-{number}" if role == "worker" and number is not None else role or pod


def _word(pod: PodChanged) -> str:
    word = _WORDS.get(pod.phase, pod.phase)
    return f"{word}: {pod.detail.splitlines()[0]}" if pod.detail else word


def _rest(workers: Sequence[PodChanged]) -> str:
    running = sum(pod.phase == "Running" for pod in workers)
    return f"  and {len(workers)} more workers, of which {running} run"


def _place(pod: PodChanged) -> tuple[str, int, str]:
    return pod.role, _number(pod.name) or 0, pod.name


def _number(pod: str) -> int | None:
    text = pod.rpartition("-")[2]
    return int(text) if text.isdecimal() else None
