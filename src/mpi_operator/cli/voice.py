"""How a job's story is told: to people, or to programs."""

import json
import sys
import zlib
from dataclasses import dataclass, field
from typing import Protocol, TextIO

from mpi_operator.api import conditions
from mpi_operator.api.types import ConditionType, MPIJob, status_manifest

from .story import Happening, JobChanged, JobDeleted, Line, PodChanged

_COLOURS = ("36", "33", "35", "32", "34", "96", "93", "95", "92", "94")


@dataclass(frozen=True)
class Verdict:
    """How it ended."""

    job: str
    code: int
    sentence: str
    seconds: float


class Voice(Protocol):
    """Somebody who tells what happens."""

    def say(self, sentence: str) -> None: ...

    def tell(self, happening: Happening) -> None: ...

    def close(self, verdict: Verdict) -> None: ...


@dataclass
class Plain:
    """For people: lines of the job on `out`, what happens around them on `aside`.

    On a terminal how far the pods are is one line that changes; elsewhere it is told when all run.
    """

    is_quiet: bool = False
    out: TextIO = field(default_factory=lambda: sys.stdout)
    aside: TextIO = field(default_factory=lambda: sys.stderr)
    _pods: dict[str, PodChanged] = field(default_factory=dict)
    _told: set[str] = field(default_factory=set)
    _progress: str = ""  # what stands in the line that changes

    def say(self, sentence: str) -> None:
        if not self.is_quiet:
            self._clear()
            print(self._dim(sentence), file=self.aside, flush=True)

    def tell(self, happening: Happening) -> None:
        match happening:
            case Line():
                self._clear()
                print(f"{self._prefix(happening)} | {happening.text}", file=self.out, flush=True)
            case PodChanged():
                self._pod(happening)
            case JobChanged():
                self._job(happening.job)
            case JobDeleted():
                pass  # the verdict says so

    def close(self, verdict: Verdict) -> None:
        self.say(f"{verdict.job} {verdict.sentence} ({verdict.seconds:.1f} s)")

    def _pod(self, pod: PodChanged) -> None:
        self._pods[pod.name] = pod
        if pod.detail:
            self._once(f"{pod.name}: {pod.detail}")
        self._show_progress()

    def _show_progress(self) -> None:
        living = [pod for pod in self._pods.values() if pod.phase in ("Pending", "Running")]
        running = [pod for pod in living if pod.phase == "Running"]
        progress = f"{len(running)} of {len(living)} pods run"
        if len(running) == len(living):
            self._clear()
        elif self.aside.isatty() and not self.is_quiet:
            self._clear()
            self._progress = progress
            print(self._dim(progress), end="", file=self.aside, flush=True)

    def _job(self, job: MPIJob) -> None:
        """What is in the way, or that it runs. How it ends is for the verdict."""
        if conditions.is_finished(job.status.conditions):
            return
        running = conditions.condition(job.status.conditions, ConditionType.RUNNING)
        if running is not None:
            self._once(
                running.message if running.is_true else f"{running.reason}: {running.message}"
            )

    def _once(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            self.say(sentence)

    def _clear(self) -> None:
        if self._progress:
            self._progress = ""
            print("\r\x1b[K", end="", file=self.aside, flush=True)

    def _prefix(self, line: Line) -> str:
        text = _short(line.pod, line.role)
        if not self.out.isatty():
            return text
        colour = _COLOURS[zlib.crc32(line.pod.encode()) % len(_COLOURS)]
        return f"\x1b[{colour}m{text}\x1b[0m"

    def _dim(self, text: str) -> str:
        return f"\x1b[2m{text}\x1b[0m" if self.aside.isatty() else text


@dataclass
class Json:
    """For programs: one object a line."""

    out: TextIO = field(default_factory=lambda: sys.stdout)

    def say(self, sentence: str) -> None:
        self._print(type="notice", message=sentence)

    def tell(self, happening: Happening) -> None:
        match happening:
            case Line():
                self._print(type="log", pod=happening.pod, role=happening.role, line=happening.text)
            case PodChanged():
                self._print(
                    type="pod",
                    pod=happening.name,
                    role=happening.role,
                    phase=happening.phase,
                    detail=happening.detail,
                )
            case JobChanged():
                self._print(type="status", status=status_manifest(happening.job.status))
            case JobDeleted():
                self._print(type="deleted", job=happening.name)

    def close(self, verdict: Verdict) -> None:
        self._print(
            type="verdict",
            job=verdict.job,
            exitCode=verdict.code,
            message=verdict.sentence,
            seconds=round(verdict.seconds, 3),
        )

    def _print(self, **facts: object) -> None:
        print(json.dumps(facts), file=self.out, flush=True)


def _short(pod: str, role: str) -> str:
    """A pod in few letters: its role, and its number where it has one."""
    number = pod.rpartition("-")[2]
    return f"{role}-{number}" if role == "worker" and number.isdecimal() else role or pod
