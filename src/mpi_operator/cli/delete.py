"""`mpijob delete`: end a job and remove it."""

import click

from mpi_operator.build.ownership import MPI_JOBS

from . import arguments, local_jobs
from .outcome import finish


@click.command("delete")
@arguments.NAME
@arguments.RUN
def command(name: str, run: str | None) -> None:
    """Delete a job. The `mpijob run` that started it ends.

    \b
    Example:
      mpijob delete pi
    """
    finish(_delete(name, run))


async def _delete(name: str, run: str | None) -> None:
    found = await local_jobs.find(name, run)
    # That very job: another one may have got its name since.
    uid = found.job.metadata.uid
    await found.cluster.delete(MPI_JOBS, found.name, found.namespace, uid=uid)
    click.echo(f"{found.name} was deleted")
