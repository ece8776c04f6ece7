"""`mpijob suspend` and `mpijob resume`: stop a job, and start it again."""

import click

from mpi_operator.build.ownership import MPI_JOBS
from mpi_operator.cli.command_errors import asynchronous
from mpi_operator.cli.known_jobs import local_jobs

from . import arguments


@click.command("suspend")
@arguments.NAME
@arguments.RUN
@asynchronous
async def suspend_command(name: str, run: str | None) -> None:
    """Suspend a job: delete its pods until `mpijob resume`.

    \b
    Example:
      mpijob suspend pi
    """
    changed = await _set_suspend(name, run, suspend=True)
    click.echo(f"{name} suspended" if changed else f"{name} is already suspended")


@click.command("resume")
@arguments.NAME
@arguments.RUN
@asynchronous
async def resume_command(name: str, run: str | None) -> None:
    """Resume a suspended job. It starts from the beginning.

    \b
    Example:
      mpijob resume pi
    """
    changed = await _set_suspend(name, run, suspend=False)
    click.echo(f"{name} resumed" if changed else f"{name} is not suspended")


async def _set_suspend(name: str, run: str | None, *, suspend: bool) -> bool:
    """Set `spec.runPolicy.suspend`; False if it has that value already."""
    found = await local_jobs.find_running(name, run)
    if found.job.spec.run_policy.suspend is suspend:
        return False
    change = {"spec": {"runPolicy": {"suspend": suspend}}}
    await found.cluster.patch(MPI_JOBS, found.name, change, found.namespace)
    return True
