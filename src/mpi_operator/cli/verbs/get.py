"""`mpijob list` and `mpijob get`: the jobs of this user on this machine."""

import click

from mpi_operator.cli.command_errors import asynchronous
from mpi_operator.cli.known_jobs import job_changes, local_jobs, printers

from . import arguments


@click.command("list")
@click.option("--watch", "-w", is_flag=True, help="Then print each job when it changes.")
@arguments.OUTPUT
@asynchronous
async def list_command(watch: bool, output: str) -> None:
    """List your jobs on this machine.

    Running jobs come first, then finished ones.

    \b
    Examples:
      mpijob list
      mpijob list --watch
      mpijob list -o json | jq '.items[].metadata.name'
    """
    if watch:
        await job_changes.show(output)
        return
    jobs = await local_jobs.all_jobs()
    if output != "table":
        items = [printers.as_object(job) for job in jobs]
        click.echo(printers.as_text(printers.as_list(items), output))
    elif jobs:
        click.echo(printers.as_table(jobs))
    else:
        click.echo("No jobs found on this machine", err=True)


@click.command("get")
@arguments.NAME
@arguments.RUN
@arguments.OUTPUT
@asynchronous
async def get_command(name: str, run: str | None, output: str) -> None:
    """Show one job.

    \b
    Examples:
      mpijob get pi
      mpijob get pi -o yaml
    """
    found = await local_jobs.find(name, run)
    if output == "table":
        click.echo(printers.as_table([found]))
    else:
        click.echo(printers.as_text(printers.as_object(found), output))
