"""The jobs of this user on this machine, wherever they were started.

Each `mpijob run` has a directory and answers at a socket in it, for as long as it lives. After that
its job is remembered for a while. What does not answer is dead, or about to be: whoever looks next
cleans up after it.
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
from mpi_operator.kube import errors
from mpi_operator.kube.resources import Manifest
from mpi_operator.local.runs import records, run_directories
from mpi_operator.local.runs.finished import FinishedRun, Reader
from mpi_operator.local.socket.socket_client import RemoteCluster

from . import format
from .outcome import Refusal

_PATIENCE_SECONDS = 5.0
_LOST = records.End("Lost", "was lost: its `mpijob run` was killed", 1)
_MOST_NAMED = 5


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
        return format.state(self.job)

    @property
    def summary(self) -> str:
        last = conditions.describing(self.job.status.conditions)
        return last.message if last else "nobody has looked at it yet"

    @property
    def kept(self) -> Path | None:
        """Where its files are, if they were kept."""
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
    """One whose `mpijob run` lives, so that it can be changed."""

    cluster: RemoteCluster


@dataclass(frozen=True)
class FinishedJob(LocalJob):
    """One that is only remembered."""

    cluster: FinishedRun
    end: records.End

    @property
    def state(self) -> str:
        """What the job says, unless it did not live to say it."""
        return super().state if self._has_ended else self.end.state

    @property
    def summary(self) -> str:
        return super().summary if self._has_ended else f"{self.name} {self.end.message}"

    @property
    def kept(self) -> Path | None:
        directory = self.cluster.directory
        return directory if records.is_kept(directory) else None

    @property
    def _has_ended(self) -> bool:
        return conditions.is_finished(self.job.status.conditions)


async def everything() -> list[LocalJob]:
    """All jobs, the newest first: those that run, then those that have ended."""
    with suppress(OSError):  # one may look where one may not write
        await asyncio.to_thread(run_directories.reap)  # what was killed is remembered from now on
    return [*await running(), *finished()]


async def running() -> list[RunningJob]:
    """The jobs that run, the newest first."""
    asked = await asyncio.gather(
        *(_jobs(RemoteCluster(run)) for run in run_directories.directories())
    )
    found = [job for jobs in asked for job in jobs]
    return sorted(found, key=_created, reverse=True)


def finished() -> list[FinishedJob]:
    """The jobs that have ended, the last one first."""
    return [job for run in records.finished(run_directories.root()) for job in _remembered(run)]


async def find(name: str, run: str | None) -> LocalJob:
    """The one job that is meant; Refusal where there is none, or more than one."""
    return chosen(await everything(), name, run)


async def find_running(name: str, run: str | None) -> RunningJob:
    """The one job that is meant, if it can be changed."""
    found = await find(name, run)
    if isinstance(found, RunningJob):
        return found
    raise Refusal(f"{found} has ended ({found.state}); only a job that runs can be changed")


def chosen(known: list[LocalJob], name: str, run: str | None) -> LocalJob:
    """The one job of all that is meant: one that runs, else the one of that name that ran last."""
    named = [job for job in known if job.name == name and run in (None, job.run)]
    match [job for job in named if isinstance(job, RunningJob)]:
        case [job]:
            return job
        case []:
            if named:
                return named[0]
            wanted = f"{name} in run {run}" if run else name
            raise Refusal(f"there is no job {wanted}; {_what_there_is(known, name)}")
        case several:
            ids = ", ".join(job.run for job in several)
            raise Refusal(
                f"{len(several)} jobs are called {name}; say which with --run, one of: {ids}"
            )


async def _jobs(cluster: RemoteCluster) -> list[RunningJob]:
    run = cluster.run.name
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            listing = await cluster.list(MPI_JOBS)
    except (errors.NotSent, errors.ConnectionLost):
        return []
    except TimeoutError:
        click.echo(f"mpijob: run {run} is there but does not answer", err=True)
        return []
    return [RunningJob(run, cluster, manifest) for manifest in listing.items]


def _remembered(run: Path) -> list[FinishedJob]:
    record = records.read(run)
    if record is None:
        return []
    cluster = FinishedRun(run, record)
    jobs = [each for each in record.objects if each.get("kind") == MPI_JOBS.kind]
    return [FinishedJob(run.name, cluster, job, record.end or _LOST) for job in jobs]


def _created(each: LocalJob) -> tuple[str, str]:
    return each.manifest["metadata"]["creationTimestamp"], each.run


def _what_there_is(known: list[LocalJob], name: str) -> str:
    if not known:
        return "you have none on this machine"
    if similar := get_close_matches(name, [job.name for job in known], n=1):
        return f"did you mean {next(job for job in known if job.name == similar[0])}?"
    several = ", ".join(map(str, known[:_MOST_NAMED]))
    more = f" and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
    return f"there is {several}{more}"
