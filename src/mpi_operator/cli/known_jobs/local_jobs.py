"""The jobs of this user on this machine, running and finished.

Each `mpijob run` has a directory, and answers on a socket in it while it lives. Afterwards a record
of its job is kept for a while. A run that does not answer is dead or about to die; the next command
that lists jobs cleans up after it.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path

import click

from mpi_operator.api import conditions
from mpi_operator.api.decode import decode_leniently
from mpi_operator.api.types import MPIJob
from mpi_operator.build.ownership import MPI_JOBS
from mpi_operator.cli.command_errors import FAILURE, CommandError
from mpi_operator.kube import errors
from mpi_operator.kube.resources import Manifest
from mpi_operator.local.runs import records, run_directories
from mpi_operator.local.runs.finished import FinishedRun, Reader
from mpi_operator.local.socket.socket_client import RemoteCluster

from . import job_records

_ANSWER_SECONDS = 5.0
_POLL_SECONDS = 0.05
_LOST = records.End("Lost", "was lost: its `mpijob run` was killed", FAILURE)
_MAX_NAMED = 5


@dataclass(frozen=True)
class LocalJob:
    """A job, and the run that it belongs to."""

    run: str
    cluster: Reader
    manifest: Manifest

    @cached_property
    def job(self) -> MPIJob:
        return decode_leniently(self.manifest)

    @property
    def state(self) -> str:
        """The type of the condition that describes the job."""
        last = conditions.describing(self.job.status.conditions)
        return last.type if last else "New"

    @property
    def summary(self) -> str:
        """The job and its state in one sentence."""
        last = conditions.describing(self.job.status.conditions)
        return f"{self.name}: {last.message if last else 'the operator has not seen it yet'}"

    @property
    def workers(self) -> str:
        """Running workers of all workers, such as `1/2`; of an ended job, how many it had."""
        count = self.job.spec.worker_count
        if self.is_over or not count:
            return str(count)
        return f"{self._running_workers}/{count}"

    @property
    def is_over(self) -> bool:
        """Whether no process of the job runs."""
        return conditions.is_finished(self.job.status.conditions)

    @property
    def _running_workers(self) -> int:
        status = self.job.status.replica_statuses.worker
        # Workers that a job was scaled down from still count until they have ended.
        return min(status.active if status else 0, self.job.spec.worker_count)

    @property
    def kept(self) -> Path | None:
        """The directory of its files, if they were kept."""
        return None

    @property
    def name(self) -> str:
        return self.job.metadata.name

    @property
    def namespace(self) -> str:
        return self.job.metadata.namespace

    def __str__(self) -> str:
        return f"{self.name} (run {self.run})"


@dataclass(frozen=True)
class RunningJob(LocalJob):
    """A job whose `mpijob run` lives, so that it can be changed."""

    cluster: RemoteCluster


@dataclass(frozen=True)
class FinishedJob(LocalJob):
    """A job of which only a record is left."""

    cluster: FinishedRun
    end: records.End

    @property
    def state(self) -> str:
        """The state in its status; how its run ended it if that came first."""
        return super().state if self._has_ended else self.end.state

    @property
    def summary(self) -> str:
        return super().summary if self._has_ended else f"{self.name} {self.end.message}"

    @property
    def kept(self) -> Path | None:
        directory = self.cluster.directory
        return directory if records.is_kept(directory) else None

    @property
    def is_over(self) -> bool:
        return True  # nothing outlives a run, whatever its last status says

    @property
    def _has_ended(self) -> bool:
        return super().is_over  # by its status


async def all_jobs() -> list[LocalJob]:
    """Running jobs, then finished ones, the newest first."""
    await reap()
    answered = await running()
    await reap()  # a run may have been killed while it was asked
    ended = finished()
    over = {job.run for job in ended}  # some may have answered before
    return [*(job for job in answered if job.run not in over), *ended]


async def reap() -> None:
    """Turn killed runs into finished ones."""
    for runs in filter(Path.exists, run_directories.roots()):
        with suppress(OSError):  # reading must work where writing is not allowed
            await asyncio.to_thread(run_directories.reap, runs)


async def running() -> list[RunningJob]:
    """The running jobs, the newest first."""
    answers = await asyncio.gather(
        *(_jobs_of(RemoteCluster(run)) for run in run_directories.directories())
    )
    found = [job for jobs in answers for job in jobs]
    return sorted(found, key=_created, reverse=True)


def finished() -> list[FinishedJob]:
    """The finished jobs, the last one first."""
    runs = records.finished(run_directories.roots())
    return [job for run in runs for job in _recorded_jobs(run)]


async def find(name: str, run: str | None) -> LocalJob:
    """The one job of this name; CommandError if there is none, or more than one."""
    return select(await all_jobs(), name, run)


async def find_running(name: str, run: str | None) -> RunningJob:
    """The one job of this name, if it is running."""
    found = await find(name, run)
    if isinstance(found, RunningJob):
        return found
    raise CommandError(f"{found} is not running: it has ended ({found.state})")


def select(known: list[LocalJob], name: str, run: str | None) -> LocalJob:
    """The running job of this name, else the one that ended last."""
    named = [job for job in known if job.name == name and run in (None, job.run)]
    match [job for job in named if isinstance(job, RunningJob)]:
        case [job]:
            return job
        case []:
            if named:
                return named[0]
            wanted = f"{name} in run {run}" if run else name
            raise CommandError(f"job {wanted} not found: {_alternatives(known, name)}")
        case several:
            options = " or ".join(f"--run {job.run}" for job in several)
            raise CommandError(f"{len(several)} running jobs are called {name}: add {options}")


async def _until_archived(run: Path) -> None:
    """Wait for a run that is about to end, so that its jobs are found among the finished ones.

    Its process closes its socket before it archives its record. A run without a record has yet to
    start.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(_ANSWER_SECONDS):
            while records.read(run) and run_directories.is_owned(run):  # noqa: ASYNC110
                await asyncio.sleep(_POLL_SECONDS)


async def _jobs_of(cluster: RemoteCluster) -> list[RunningJob]:
    run = cluster.run.name
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            listing = await cluster.list(MPI_JOBS)
    except (errors.NotSent, errors.ConnectionLost):
        await _until_archived(cluster.run)
        return []
    except TimeoutError:
        click.echo(f"mpijob: run {run} did not answer within {_ANSWER_SECONDS:g}s", err=True)
        return []
    return [RunningJob(run, cluster, manifest) for manifest in listing.items]


def _recorded_jobs(run: Path) -> list[FinishedJob]:
    record = records.read(run)
    if record is None:
        return []
    cluster = FinishedRun(run, record)
    return [
        FinishedJob(run.name, cluster, job, record.ends.get(job["metadata"]["name"], _LOST))
        for job in job_records.jobs(record)
    ]


def _created(each: LocalJob) -> tuple[str, str]:
    return each.manifest["metadata"]["creationTimestamp"], each.run


def _alternatives(known: list[LocalJob], name: str) -> str:
    """What there is instead. Many runs may have one name, which is enough to select the last."""
    if not known:
        return "you have no jobs on this machine"
    if runs := [job.run for job in known if job.name == name]:
        return f"its runs are {_shortened(runs)}"
    names = list(dict.fromkeys(job.name for job in known))
    if similar := get_close_matches(name, names, n=1):
        return f"did you mean {similar[0]}?"
    return f"your jobs are {_shortened(names)}" if len(names) > 1 else f"your job is {names[0]}"


def _shortened(words: list[str]) -> str:
    more = f" and {len(words) - _MAX_NAMED} more" if len(words) > _MAX_NAMED else ""
    return ", ".join(words[:_MAX_NAMED]) + more
