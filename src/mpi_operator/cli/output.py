"""How a job's story is told: to people, or to programs."""

import sys
import zlib
from pathlib import Path
from typing import NamedTuple, Protocol, TextIO

import msgspec

from mpi_operator.api import conditions
from mpi_operator.api.types import ConditionType, MPIJob, status_manifest
from mpi_operator.local.runs.records import End

from . import progress
from .format import gist
from .job_stream import Happening, JobChanged, JobDeleted, Line, PodChanged

_COLOURS = ("36", "33", "35", "32", "34", "96", "93", "95", "92", "94")
_LAUNCHER = "launcher"

_encode = msgspec.json.Encoder().encode


class Verdict(NamedTuple):
    """How it ended."""

    job: str
    end: End
    seconds: float
    kept: Path | None = None  # where its files are, if they were to be kept


class Voice(Protocol):
    """Somebody who tells what happens."""

    def say(self, sentence: str) -> None: ...

    def tell(self, happening: Happening) -> None: ...

    def idle(self) -> None:
        """All that is known has been told."""
        ...

    def close(self, verdict: Verdict) -> None: ...


class Plain:
    """For people: lines of the job on `out`, what happens around them on `aside`.

    On a terminal the pods and how far they are can be seen until the launcher has its say.
    """

    def __init__(
        self, *, is_quiet: bool = False, out: TextIO | None = None, aside: TextIO | None = None
    ) -> None:
        self._is_quiet = is_quiet
        self._out = out or sys.stdout
        self._aside = aside or sys.stderr
        self._screen = progress.Screen(self._aside) if self._has_screen else None
        self._pods: dict[str, PodChanged] = {}
        self._told: set[str] = set()
        self._is_speaking = False  # the launcher: from then on only its lines count

    def say(self, sentence: str) -> None:
        if not self._is_quiet:
            self._clear()
            print(self._dim(sentence), file=self._aside, flush=True)

    def tell(self, happening: Happening) -> None:
        match happening:
            case Line():
                self._clear()
                print(f"{self._prefix(happening)} | {happening.text}", file=self._out, flush=True)
                self._is_speaking |= happening.role == _LAUNCHER
            case PodChanged():
                self._pod(happening)
            case JobChanged():
                self._job(happening.job)
            case JobDeleted():
                pass  # the verdict says so

    def idle(self) -> None:
        if self._screen is not None and not self._is_speaking:
            self._screen.show(progress.lines(self._pods.values()))

    def close(self, verdict: Verdict) -> None:
        end = verdict.end
        code = f"exit code {end.exit_code}, " if end.state == "Failed" else ""
        self.say(f"{verdict.job} {gist(end.message)} ({code}{verdict.seconds:.1f} s)")
        if verdict.kept:
            self.say(f"its files are in {verdict.kept} until `mpijob delete {verdict.job}`")

    def _pod(self, pod: PodChanged) -> None:
        is_new = pod.name not in self._pods
        self._pods[pod.name] = pod
        if is_new and pod.role == _LAUNCHER:
            self._is_speaking = False  # another try
        if pod.detail:
            self._once(f"{pod.name}: {pod.detail}")

    def _job(self, job: MPIJob) -> None:
        """What is in the way, or that it runs. How it ends is for the verdict."""
        if conditions.is_finished(job.status.conditions):
            self._pods.clear()
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
        if self._screen is not None:
            self._screen.clear()

    def _prefix(self, line: Line) -> str:
        text = progress.short(line.pod, line.role)
        if not self._out.isatty():
            return text
        colour = _COLOURS[zlib.crc32(line.pod.encode()) % len(_COLOURS)]
        return f"\x1b[{colour}m{text}\x1b[0m"

    def _dim(self, text: str) -> str:
        return f"\x1b[2m{text}\x1b[0m" if self._aside.isatty() else text

    @property
    def _has_screen(self) -> bool:
        return not self._is_quiet and self._aside.isatty()


class Json:
    """For programs: one object a line."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout

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

    def idle(self) -> None:
        """There is nothing to draw."""

    def close(self, verdict: Verdict) -> None:
        self._print(
            type="verdict",
            job=verdict.job,
            state=verdict.end.state,
            exitCode=verdict.end.exit_code,
            message=verdict.end.message,
            seconds=round(verdict.seconds, 3),
            **({"kept": str(verdict.kept)} if verdict.kept else {}),
        )

    def _print(self, **facts: object) -> None:
        print(_encode(facts).decode(), file=self._out, flush=True)
