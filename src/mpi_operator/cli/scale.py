"""`mpijob scale`: more workers, or fewer."""

import click

from mpi_operator.build.ownership import MPI_JOBS

from . import arguments, local_jobs
from .outcome import Refusal, finish


@click.command("scale")
@arguments.NAME
@click.option(
    "--workers", type=click.IntRange(min=0), required=True, help="How many there shall be."
)
@arguments.RUN
def command(name: str, workers: int, run: str | None) -> None:
    """Change how many workers a job has.

    \b
    Example:
      mpijob scale pi --workers 4
    """
    finish(_scale(name, workers, run))


async def _scale(name: str, workers: int, run: str | None) -> None:
    found = await local_jobs.find_running(name, run)
    if found.job.spec.worker is None:
        raise Refusal(f"{name} has no workers to have more or fewer of: its spec names none")
    size = {"spec": {"replicas": workers}}
    await found.cluster.patch(MPI_JOBS, found.name, size, found.namespace, subresource="scale")
    click.echo(f"{name} shall have {workers} workers; it had {found.job.spec.worker_count}")
