"""`mpijob list`: every job of this user on this machine, also those that have ended."""

import click

from . import arguments, local_jobs, printers
from .outcome import finish


@click.command("list")
@arguments.OUTPUT
def command(output: str) -> None:
    """List your jobs on this machine: those that run, then the last ones that have ended.

    \b
    Examples:
      mpijob list
      mpijob list -o json | jq '.items[].metadata.name'
    """
    finish(_list(output))


async def _list(output: str) -> None:
    jobs = await local_jobs.everything()
    if output != "table":
        items = [printers.as_object(job) for job in jobs]
        click.echo(printers.as_text(printers.as_list(items), output))
    elif jobs:
        click.echo(printers.as_table(jobs))
    else:
        click.echo("you have no jobs on this machine", err=True)
