"""`mpijob run --detach`: the run continues in a process of its own, without a terminal.

The process is forked when the job has been read, so that errors in the file end the command as they
always do. The command itself ends when other verbs can find the job:

    mpijob run --detach ──fork──► setsid, ignore SIGHUP, no terminal ──► runs the job
            ◄──────────────── "it runs", or why it does not ─────────────┘
"""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, NoReturn

import click
import msgspec

from mpi_operator.cli.command_errors import FAILURE, INVALID_INPUT, CommandError, InvalidInput
from mpi_operator.cli.job_output.job_stream import JobChanged, Update
from mpi_operator.cli.job_output.output import Output, TextOutput, json_line
from mpi_operator.local.runs import run_directories


class _Report(msgspec.Struct, frozen=True):
    """What the process reports once: the jobs that run, or why they do not."""

    jobs: Sequence[str] = ()
    error: str = ""
    command: str = ""
    exit_code: int = 0


class _ReportPipe:
    """Sends one report, and ignores all others: the descriptor has another use by then."""

    def __init__(self, writer: int) -> None:
        self._writer: int | None = writer

    def send(self, report: _Report) -> None:
        if self._writer is None:
            return
        writer, self._writer = self._writer, None
        with suppress(OSError):  # the command was killed: the job runs all the same
            os.write(writer, msgspec.json.encode(report) + b"\n")
        os.close(writer)


class _DetachedOutput(TextOutput):
    """Prints nothing: `mpijob logs` has the output of the jobs. Reports when all of them exist."""

    def __init__(self, pipe: _ReportPipe, expected: int) -> None:
        super().__init__(is_quiet=True)
        self._pipe = pipe
        self._expected = expected
        self._names: dict[str, None] = {}

    def show(self, update: Update) -> None:
        if isinstance(update, JobChanged):
            # The run may have renamed it: another job has the name that was wanted.
            self._names[update.job.metadata.name] = None
            if len(self._names) == self._expected:
                self._pipe.send(_Report(jobs=[*self._names]))


class Started(NamedTuple):
    """Jobs that run in the background, under the names that they have there."""

    jobs: Sequence[str]
    run: str


def start(run: Callable[[Output], int], expected: int) -> Started:
    """Have a process of its own run so many jobs. CommandError if it cannot."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _run_detached(run, _ReportPipe(writer), expected)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        line = pipe.readline()
    if not line:
        raise CommandError("the detached run ended before the job was created")
    report = msgspec.json.decode(line, type=_Report)
    if report.error:
        is_invalid = report.exit_code == INVALID_INPUT
        raise (InvalidInput if is_invalid else CommandError)(report.error, report.command)
    return Started(report.jobs, _run_of(pid))


def announce(started: Started, output: str | None) -> None:
    """Say how the jobs are called, and how to follow them."""
    run = started.run
    for name in started.jobs:
        if output == "json":
            click.echo(json_line(type="detached", job=name, run=run), nl=False)
            continue
        click.echo(f"{name} started in the background (run {run})")
        click.echo(f"mpijob logs {name} --follow  # shows its output", err=True)
        click.echo(f"mpijob wait {name}           # waits for its end", err=True)


def _run_of(pid: int) -> str:
    names = [each.name for each in run_directories.directories()]
    return next((name for name in names if name.startswith(f"{pid}-")), str(pid))


def _run_detached(run: Callable[[Output], int], pipe: _ReportPipe, expected: int) -> NoReturn:
    """In the new process: leave the terminal, run the jobs, report once. Never returns."""
    code = FAILURE
    try:
        _leave_terminal()
        code = run(_DetachedOutput(pipe, expected))
    except CommandError as error:
        pipe.send(_Report((), error.message, error.command, error.exit_code))
    except BaseException as error:
        pipe.send(_Report(error=f"the detached run failed: {error!r}", exit_code=FAILURE))
    finally:
        os._exit(code)


def _leave_terminal() -> None:
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
