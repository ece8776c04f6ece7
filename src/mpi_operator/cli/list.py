"""`mpijob list`: every job of this user on this machine."""

import click

from . import arguments, local_jobs, showing
from .outcome import finish


@click.command("list")
@arguments.OUTPUT
def command(output: str) -> None:
    """List your jobs that run on this machine.

    \b
    Examples:
      mpijob list
      mpijob list -o json | jq '.items[].metadata.name'
    """
    finish(_list(output))


async def _list(output: str) -> None:
    jobs = await local_jobs.everything()
    if output != "table":
        items = [showing.as_object(job) for job in jobs]
        click.echo(showing.as_text({"apiVersion": "v1", "kind": "List", "items": items}, output))
    elif jobs:
        click.echo(showing.as_table(jobs))
    else:
        click.echo("no job of yours runs on this machine", err=True)
