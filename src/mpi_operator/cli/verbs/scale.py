"""`mpijob scale`: change the number of workers."""

import click

from mpi_operator.build.ownership import MPI_JOBS
from mpi_operator.cli.command_errors import CommandError, asynchronous
from mpi_operator.cli.format import counted
from mpi_operator.cli.known_jobs import local_jobs

from . import arguments


@click.command("scale")
@arguments.NAME
@click.option(
    "--workers",
    type=click.IntRange(min=0),
    metavar="N",
    required=True,
    help="Set the number of workers.",
)
@arguments.RUN
@asynchronous
async def scale_command(name: str, workers: int, run: str | None) -> None:
    """Change the number of workers of a job.

    \b
    Example:
      mpijob scale pi --workers 4
    """
    found = await local_jobs.find_running(name, run)
    if found.job.spec.worker is None:
        raise CommandError(f"cannot scale {name}: its spec has no workers")
    before = found.job.spec.worker_count
    if workers == before:
        click.echo(f"{name} already has {counted(workers, 'worker')}")
        return
    size = {"spec": {"replicas": workers}}
    await found.cluster.patch(MPI_JOBS, found.name, size, found.namespace, subresource="scale")
    click.echo(f"{name} scaled from {before} to {counted(workers, 'worker')}")
