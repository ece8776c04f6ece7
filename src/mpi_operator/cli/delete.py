"""`mpijob delete`: end a job and remove it, or forget one that has ended."""

import click

from mpi_operator.build.ownership import MPI_JOBS
from mpi_operator.kube.client import DeleteOptions
from mpi_operator.local.runs import records

from . import arguments, local_jobs
from .local_jobs import FinishedJob, RunningJob
from .outcome import finish


@click.command("delete")
@click.argument("name", required=False)
@arguments.RUN
@click.option(
    "--finished",
    is_flag=True,
    help="All jobs that have ended; with NAME, those of that name.",
)
def command(name: str | None, run: str | None, finished: bool) -> None:
    """Delete a job.

    The `mpijob run` of one that runs ends. Of one that has ended, what is remembered goes, and what
    was kept of it (`mpijob run --keep`).

    \b
    Examples:
      mpijob delete pi
      mpijob delete --finished
    """
    if finished:
        finish(_delete_finished(name, run))
    elif name:
        finish(_delete(name, run))
    else:
        raise click.UsageError("Which job? Give its NAME, or --finished for all that have ended.")


async def _delete(name: str, run: str | None) -> None:
    match await local_jobs.find(name, run):
        case RunningJob() as found:
            # That very job: another one may have got its name since.
            uid = found.job.metadata.uid
            await found.cluster.delete(
                MPI_JOBS, found.name, found.namespace, DeleteOptions(uid=uid)
            )
            click.echo(f"{found.name} was deleted")
        case FinishedJob() as found:
            records.delete(found.cluster.directory)
            click.echo(f"{found} was deleted")


async def _delete_finished(name: str | None, run: str | None) -> None:
    known = [job for job in await local_jobs.everything() if isinstance(job, FinishedJob)]
    meant = [job for job in known if name in (None, job.name) and run in (None, job.run)]
    for job in meant:
        records.delete(job.cluster.directory)
    click.echo(f"{len(meant)} {'job was' if len(meant) == 1 else 'jobs were'} deleted")
