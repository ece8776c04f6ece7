"""`mpijob delete`: stop a running job, or remove the record of a finished one."""

import click

from mpi_operator.build.ownership import MPI_JOBS
from mpi_operator.cli.command_errors import asynchronous
from mpi_operator.cli.format import counted
from mpi_operator.cli.known_jobs import job_records, local_jobs
from mpi_operator.cli.known_jobs.local_jobs import FinishedJob, RunningJob
from mpi_operator.kube.client import DeleteOptions

from . import arguments


@click.command("delete")
@arguments.OPTIONAL_NAME
@arguments.RUN
@click.option("--finished", is_flag=True, help="Delete all finished jobs, or those called NAME.")
@asynchronous
async def delete_command(name: str | None, run: str | None, finished: bool) -> None:
    """Delete a job.

    Stops a running job, and its `mpijob run` exits. Removes the record of a finished job, its logs
    and the files that `mpijob run --keep` kept.

    \b
    Examples:
      mpijob delete pi
      mpijob delete --finished
    """
    if finished:
        await _delete_finished(name, run)
    elif name:
        await _delete(name, run)
    else:
        raise click.UsageError("Missing argument 'NAME' or option '--finished'.")


async def _delete(name: str, run: str | None) -> None:
    match await local_jobs.find(name, run):
        case RunningJob() as found:
            # By uid: a new job may have taken the name meanwhile.
            uid = found.job.metadata.uid
            await found.cluster.delete(
                MPI_JOBS, found.name, found.namespace, DeleteOptions(uid=uid)
            )
            click.echo(f"{found.name} deleted")
        case FinishedJob() as found:
            job_records.delete(found.cluster.directory, found.name)
            click.echo(f"{found} deleted")


async def _delete_finished(name: str | None, run: str | None) -> None:
    known = [job for job in await local_jobs.all_jobs() if isinstance(job, FinishedJob)]
    selected = [job for job in known if name in (None, job.name) and run in (None, job.run)]
    for job in selected:
        job_records.delete(job.cluster.directory, job.name)
    click.echo(f"{counted(len(selected), 'job')} deleted")
