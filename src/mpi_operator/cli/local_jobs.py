"""The jobs of this user on this machine, wherever they were started.

Each `mpijob run` has a directory and answers at a socket in it. What does not answer is dead, or
about to be: the next start cleans up after it.
"""

import asyncio
from dataclasses import dataclass
from functools import cached_property

import click

from mpi_operator.api.reading import salvaged_job
from mpi_operator.api.types import MPIJob
from mpi_operator.build.ownership import MPI_JOBS
from mpi_operator.kube import errors
from mpi_operator.kube.resources import Manifest
from mpi_operator.local import runs
from mpi_operator.local.remote import RemoteCluster

from .outcome import Refusal

_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True)
class LocalJob:
    """A job, and the cluster of the run that it belongs to."""

    cluster: RemoteCluster
    manifest: Manifest

    @cached_property
    def job(self) -> MPIJob:
        return salvaged_job(self.manifest)

    @property
    def run(self) -> str:
        return self.cluster.run.name

    @property
    def name(self) -> str:
        return self.job.metadata.name

    @property
    def namespace(self) -> str:
        return self.job.metadata.namespace

    def __str__(self) -> str:
        return f"{self.name} (run {self.run})"


async def everything() -> list[LocalJob]:
    """All jobs, oldest first."""
    asked = await asyncio.gather(*(_jobs(RemoteCluster(run)) for run in runs.directories()))
    found = [job for jobs in asked for job in jobs]
    return sorted(
        found, key=lambda each: (each.manifest["metadata"]["creationTimestamp"], each.run)
    )


async def find(name: str, run: str | None) -> LocalJob:
    """The one job that is meant; Refusal where there is none, or more than one."""
    known = await everything()
    return chosen(known, name, run)


def chosen(known: list[LocalJob], name: str, run: str | None) -> LocalJob:
    """The one job of all that is meant."""
    match [job for job in known if job.name == name and run in (None, job.run)]:
        case [job]:
            return job
        case []:
            wanted = f"{name} in run {run}" if run else name
            raise Refusal(f"there is no job {wanted}; {_what_there_is(known)}")
        case several:
            ids = ", ".join(job.run for job in several)
            raise Refusal(
                f"{len(several)} jobs are called {name}; say which with --run, one of: {ids}"
            )


async def _jobs(cluster: RemoteCluster) -> list[LocalJob]:
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            listing = await cluster.list(MPI_JOBS)
    except (errors.NotSent, errors.ConnectionLost):
        return []
    except TimeoutError:
        click.echo(f"mpijob: run {cluster.run.name} is there but does not answer", err=True)
        return []
    return [LocalJob(cluster, manifest) for manifest in listing.items]


def _what_there_is(known: list[LocalJob]) -> str:
    if not known:
        return "no job of yours runs on this machine"
    return f"there is {', '.join(map(str, known))}"
