"""`mpijob wait`: wait until a job ends, and exit with its exit code."""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

import click

from mpi_operator.cli.command_errors import TIMEOUT, CommandError, asynchronous
from mpi_operator.cli.duration import Duration
from mpi_operator.cli.format import gist
from mpi_operator.cli.job_output import outcome
from mpi_operator.cli.job_output.job_stream import JobChanged, JobDeleted, has_ended, watch_job
from mpi_operator.cli.job_output.launcher_failure import LastLines
from mpi_operator.cli.known_jobs import job_records, local_jobs
from mpi_operator.cli.known_jobs.local_jobs import FinishedJob, LocalJob, RunningJob
from mpi_operator.cli.plain_text import printable
from mpi_operator.local.runs import records, run_directories
from mpi_operator.local.runs.records import End

from . import arguments

_POLL_SECONDS = 0.1
_RECORD_SECONDS = 10.0  # a run whose job has ended still stops its pods and collects their logs


class _TimedOut(CommandError):
    exit_code = TIMEOUT


@click.command("wait")
@arguments.NAME
@arguments.RUN
@click.option(
    "--timeout",
    type=Duration(),
    metavar="DURATION",
    show_default="no limit",
    help="Wait no longer than this, such as 90, 10m or 1h, and exit with code 124.",
)
@asynchronous
async def wait_command(name: str, run: str | None, timeout: float | None) -> None:
    """Wait until a job ends, and exit with its exit code.

    The exit code is that of `mpijob run`: the launcher's, or 124 if --timeout comes first. If the
    job has already ended, this command exits at once.

    \b
    Examples:
      mpijob wait pi
      mpijob wait pi --timeout 1h && mpijob logs pi
    """
    found = await local_jobs.find(name, run)
    try:
        async with asyncio.timeout(timeout):
            end = await end_of(found)
    except TimeoutError:
        raise _TimedOut(f"{found} did not end within {timeout:g}s") from None
    what = f"failed: {end.cause}" if end.cause else gist(end.message)
    click.echo(f"{name} {printable(what)}")
    sys.exit(end.exit_code)


async def end_of(found: LocalJob) -> End:
    """How a job ends, when it has ended."""
    if isinstance(found, FinishedJob):
        return found.end
    assert isinstance(found, RunningJob), "a job is running or finished"
    reported = await _until_ended(found)
    recorded = await _recorded(found.cluster.run, found.name)
    return recorded or reported or outcome.DELETED


async def _until_ended(found: RunningJob) -> End | None:
    """How the job ended; None if its run ended first."""
    async with watch_job(
        found.cluster, found.name, found.namespace, reads_log_of=lambda pod: False
    ) as stream:
        while True:
            update = await stream.next()
            if isinstance(update, JobDeleted):
                return None
            if isinstance(update, JobChanged) and has_ended(update.job):
                return outcome.end_of(update.job, stream.objects, LastLines())


async def _recorded(run: Path, name: str) -> End | None:
    """What the run recorded, once it has ended or only other jobs of it run; None if nothing."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_RECORD_SECONDS):
            while run in run_directories.directories():
                record = records.read(run)
                others = job_records.unfinished(record) if record else set()
                if record and others and name not in others:
                    return record.ends.get(name)
                await asyncio.sleep(_POLL_SECONDS)
                await local_jobs.reap()  # if it was killed
    ends = (job.end for job in local_jobs.finished() if (job.run, job.name) == (run.name, name))
    return next(ends, None)
