"""What a program reports about its own progress, as a bar with the time left.

A program prints lines such as these, and `mpijob run` and `mpijob describe` show the last one:

    progress: step=40 total=100 loss=0.25 images/s=812.5

Those of TensorFlow's tf_cnn_benchmarks are understood too. They are read only when they are shown,
so they cost the operator and other jobs nothing.
"""

import re
from collections import deque
from typing import NamedTuple

from mpi_operator.cli.plain_text import printable

# After anything, because mpirun and horovodrun can put a tag in front of a line.
_REPORT = re.compile(rb"\bprogress: (step=.*)")
_FIELD = re.compile(r"([^\s=]+)=(\S+)")
_BENCHMARK_TOTAL = re.compile(rb"\bNum batches: +(\d+)")
_BENCHMARK_STEP = re.compile(rb"(?:^|[\s:>])(\d+)\timages/sec: ([\d.]+) .*\t([\d.]+|nan|inf)\s*$")
_BAR_WIDTH = 20
_STEPS_FOR_PACE = 20
# Lines of several ranks may come in another order than they were printed. A program that goes
# through so many steps again has started again.
_STEPS_OF_A_NEW_START = 3


class Report(NamedTuple):
    """One line of a program."""

    step: int
    total: int
    details: tuple[str, ...]
    time: float
    """In seconds, on any clock."""


class _Steps(deque[Report]):
    """The last steps in ascending order, each with the time of the rank that was there first."""

    def __init__(self) -> None:
        super().__init__(maxlen=_STEPS_FOR_PACE)

    def add(self, report: Report) -> None:
        """Add the report of a new step, or what another rank says about the last one."""
        last = self[-1] if self else None
        if last is None or report.step > last.step:
            self.append(report)
        elif report.step == last.step:
            self[-1] = report._replace(time=last.time)


class ProgramProgress:
    """The progress of one program, from its lines and their times."""

    def __init__(self) -> None:
        self._benchmark_total = 0
        self._reports = _Steps()
        self._behind = _Steps()  # the reports since then of earlier steps

    def note(self, printed: bytes, time: float) -> None:
        """Take note of a line, if it is about progress."""
        self.note_header(printed)
        if report := _report(printed, time) or self._benchmark_report(printed, time):
            self._add(report)

    def note_header(self, printed: bytes) -> None:
        """Take note of what a program says only once, before its first step."""
        if total := _BENCHMARK_TOTAL.search(printed):
            self._benchmark_total = int(total[1])

    def _add(self, report: Report) -> None:
        if self._reports and report.step < self._reports[-1].step:
            self._behind.add(report)
            if len(self._behind) < _STEPS_OF_A_NEW_START:
                return
            self._reports = self._behind
        else:
            self._reports.add(report)
        self._behind = _Steps()

    @property
    def line(self) -> str:
        """The bar, the step, what else the program said, and the time left; "" without a report."""
        if not self._reports:
            return ""
        last = self._reports[-1]
        words = [f"{_bar(last)} {last.step}/{last.total}", *last.details, self._time_left()]
        return "  ".join(filter(None, words))

    def _time_left(self) -> str:
        first, last = self._reports[0], self._reports[-1]
        steps, seconds = last.step - first.step, last.time - first.time
        if not 0 < last.step < last.total or not steps or seconds <= 0:
            return ""
        return f"{_duration((last.total - last.step) * seconds / steps)} left"

    def _benchmark_report(self, printed: bytes, time: float) -> Report | None:
        found = _BENCHMARK_STEP.search(printed)
        if found is None or not self._benchmark_total:
            return None
        step, speed, loss = (each.decode() for each in found.groups())
        return Report(int(step), self._benchmark_total, (f"loss {loss}", f"{speed} images/s"), time)


def _report(printed: bytes, time: float) -> Report | None:
    found = _REPORT.search(printed)
    if found is None:
        return None
    fields = dict(_FIELD.findall(printable(found[1].decode(errors="replace"))))
    try:
        step, total = int(fields.pop("step")), int(fields.pop("total"))
    except (KeyError, ValueError):
        return None
    return Report(step, total, tuple(_detail(*field) for field in fields.items()), time)


def _detail(name: str, value: str) -> str:
    """`loss 0.25`, but `812.5 images/s`."""
    return f"{value} {name}" if "/" in name else f"{name} {value}"


def _bar(report: Report) -> str:
    share = min(max(report.step / report.total, 0), 1) if report.total > 0 else 0
    done = int(share * _BAR_WIDTH)
    return f"[{'#' * done}{'-' * (_BAR_WIDTH - done)}]"


def _duration(seconds: float) -> str:
    """Two units at most: `2h 5m`, `1m 10s`, `8s`."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    if hours:
        return f"{hours}h {minute}m"
    return f"{minute}m {second}s" if minute else f"{second}s"
