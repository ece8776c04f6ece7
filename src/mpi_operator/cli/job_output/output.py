"""How `mpijob run` shows a job: as text, or as JSON for programs."""

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Protocol, TextIO

import msgspec

from mpi_operator.api import conditions
from mpi_operator.api.types import ConditionType, MPIJob, status_manifest
from mpi_operator.cli.format import gist
from mpi_operator.cli.plain_text import printable
from mpi_operator.local.runs.records import End
from mpi_operator.local.times import exact_timestamp

from . import progress
from .job_stream import JobChanged, JobDeleted, Line, PodChanged, RankFailed, Update
from .line_writer import LineWriter, OutputLost, Prefix, deliver
from .program_progress import ProgramProgress
from .whole_lines import WholeLines

_LAUNCHER = "launcher"

_encode = msgspec.json.Encoder().encode


class Verdict(NamedTuple):
    """How a job ended."""

    job: str
    end: End
    seconds: float
    kept: Path | None = None  # the directory of its files, if they are kept

    @property
    def line(self) -> str:
        """The last line for people."""
        what = f"failed: {self.end.cause}" if self.end.cause else gist(self.end.message)
        says_code = self.end.state != "Failed" or f"exit code {self.end.exit_code}" in what
        code = "" if says_code else f"exit code {self.end.exit_code}, "
        return f"{self.job} {printable(what)} ({code}{self.seconds:.1f}s)"


class Output(Protocol):
    """Shows a job while it runs."""

    def notice(self, message: str) -> None: ...

    def show(self, update: Update) -> None: ...

    def refresh(self) -> None:
        """No update is waiting: redraw."""
        ...

    def close(self, verdict: Verdict) -> None: ...


class TextOutput:
    """For people: the lines of the job on `out`, everything else on `err`.

    A terminal shows the state of each pod until the launcher prints its first line, and after that
    a bar for each program that reports its progress. With several jobs, pods have their whole
    names, which begin with that of the job.
    """

    def __init__(
        self,
        *,
        is_quiet: bool = False,
        prefix: str = Prefix.AUTO,
        has_timestamps: bool = False,
        has_several_jobs: bool = False,
        out: TextIO | None = None,
        err: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._is_quiet = is_quiet
        self._clock = clock
        self._err = err or sys.stderr
        self._lines = LineWriter(
            out or sys.stdout,
            self._err,
            Prefix(prefix),
            has_timestamps=has_timestamps,
            has_whole_names=has_several_jobs,
        )
        self._has_several_jobs = has_several_jobs
        self._screen = progress.Screen(self._err) if self._has_screen else None
        self._pods: dict[str, PodChanged] = {}
        self._printed: set[str] = set()
        self._launcher_prints = False  # from then on only log lines are shown, and bars
        self._whole_lines = WholeLines()
        self._programs: dict[str, ProgramProgress] = {}  # of launchers

    def notice(self, message: str) -> None:
        if not self._is_quiet:
            self._say(message)

    def _say(self, message: str) -> None:
        self._clear()
        # A job does not end because our messages are not read.
        with suppress(OSError, OutputLost):
            self._lines.finish_line()
            print(self._dim(message), file=self._err, flush=True)

    def show(self, update: Update) -> None:
        match update:
            case Line():
                self._clear()
                self._lines.write(update)
                self._launcher_prints |= update.role == _LAUNCHER
                self._note_progress(update)
            case PodChanged():
                self._show_pod(update)
            case JobChanged():
                self._show_job(update.job)
            case JobDeleted() | RankFailed():
                pass  # the verdict says so

    def refresh(self) -> None:
        if self._screen is not None and not (self._launcher_prints and self._lines.is_in_line):
            with suppress(OSError):
                self._screen.show(self._bars() if self._launcher_prints else self._pod_lines())

    def _pod_lines(self) -> list[str]:
        return progress.lines(self._pods.values(), has_whole_names=self._has_several_jobs)

    def _bars(self) -> list[str]:
        bars = {pod: program.line for pod, program in self._programs.items()}
        return [
            f"  {pod}  {bar}" if self._has_several_jobs else f"  {bar}"
            for pod, bar in bars.items()
            if bar
        ]

    def _note_progress(self, piece: Line) -> None:
        if self._screen is None or piece.role != _LAUNCHER or piece.is_stderr:
            return
        if line := self._whole_lines.feed(piece):
            self._programs.setdefault(line.pod, ProgramProgress()).note(line.printed, self._clock())

    def close(self, verdict: Verdict) -> None:
        self._say(verdict.line) if verdict.end.exit_code else self.notice(verdict.line)
        if verdict.kept:
            self.notice(f"{verdict.job} left its files in {verdict.kept}")
            self.notice(f"mpijob delete {verdict.job}  # removes them")

    def _show_pod(self, pod: PodChanged) -> None:
        is_new = pod.name not in self._pods
        self._pods[pod.name] = pod
        if is_new and pod.role == _LAUNCHER and not self._has_several_jobs:
            self._launcher_prints = False  # the next attempt; that of another job may print
        if pod.detail:
            self._notice_once(f"{pod.name}: {pod.detail}")

    def _show_job(self, job: MPIJob) -> None:
        """That the job is running, or why not. The verdict says how it ends."""
        if conditions.is_finished(job.status.conditions):
            self._pods.clear()
            self._programs.clear()
            return
        running = conditions.condition(job.status.conditions, ConditionType.RUNNING)
        if running is not None:
            self._notice_once(
                running.message if running.is_true else f"{running.reason}: {running.message}"
            )

    def _notice_once(self, message: str) -> None:
        if message not in self._printed:
            self._printed.add(message)
            self.notice(message)

    def _clear(self) -> None:
        if self._screen is not None:
            with suppress(OSError):
                self._screen.clear()

    def _dim(self, text: str) -> str:
        return f"\x1b[2m{text}\x1b[0m" if self._err.isatty() else text

    @property
    def _has_screen(self) -> bool:
        return not self._is_quiet and self._err.isatty()


class JsonOutput:
    """For programs: one object per line."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._lines = WholeLines()
        self._last: dict[str, dict[str, object]] = {}  # what was printed last about each object

    def notice(self, message: str) -> None:
        with suppress(OutputLost):  # the next update reports it
            self._print(type="notice", message=message)

    def show(self, update: Update) -> None:
        match update:
            case Line():
                if line := self._lines.feed(update):
                    self._print_line(line)
            case PodChanged():
                name, role, phase, detail = update
                self._print_change(
                    name, type="pod", pod=name, role=role, phase=phase, detail=detail
                )
            case JobChanged():
                name, status = update.job.metadata.name, status_manifest(update.job.status)
                self._print_change(name, type="status", job=name, status=status)
            case JobDeleted():
                self._print(type="deleted", job=update.name)
            case RankFailed():
                pass  # the verdict says so

    def refresh(self) -> None:
        """There is no screen."""

    def close(self, verdict: Verdict) -> None:
        try:
            for line in self._lines.rest():
                self._print_line(line)
            self._print_verdict(verdict)
        except OutputLost:
            with suppress(OSError):
                print(verdict.line, file=sys.stderr, flush=True)  # noqa: T201

    def _print_verdict(self, verdict: Verdict) -> None:
        self._print(
            type="verdict",
            job=verdict.job,
            state=verdict.end.state,
            exitCode=verdict.end.exit_code,
            message=verdict.end.message,
            **({"cause": verdict.end.cause} if verdict.end.cause else {}),
            seconds=round(verdict.seconds, 3),
            **({"kept": str(verdict.kept)} if verdict.kept else {}),
        )

    def error(self, message: str, exit_code: int, advice: str = "") -> None:
        """Print why a job cannot start, and a command that helps if there is one."""
        with suppress(OutputLost):
            self._print(
                type="error",
                message=message,
                **({"advice": advice} if advice else {}),
                exitCode=exit_code,
            )

    def _print_line(self, line: Line) -> None:
        self._print(
            type="log",
            pod=line.pod,
            role=line.role,
            **({"container": line.container} if line.container else {}),
            stream="stderr" if line.is_stderr else "stdout",
            line=line.text,
        )

    def _print_change(self, about: str, **fields: object) -> None:
        if self._last.get(about) != fields:
            self._last[about] = fields
            self._print(**fields)

    def _print(self, **fields: object) -> None:
        deliver(json_line(**fields), self._out)


def json_line(**fields: object) -> bytes:
    """One object of `-o json`, with the time."""
    return _encode({"time": exact_timestamp(datetime.now(UTC)), **fields}) + b"\n"
