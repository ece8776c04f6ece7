"""`mpijob list` and `mpijob get`: the jobs of this user on this machine."""

import click

from . import arguments, local_jobs, printers
from .outcome import asynchronous


@click.command("list")
@arguments.OUTPUT
@asynchronous
async def list_command(output: str) -> None:
    """List your jobs on this machine.

    Running jobs come first, then finished ones.

    \b
    Examples:
      mpijob list
      mpijob list -o json | jq '.items[].metadata.name'
    """
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
