"""`mpijob get`: one job."""

import click

from . import arguments, local_jobs, printers
from .outcome import finish


@click.command("get")
@arguments.NAME
@arguments.RUN
@arguments.OUTPUT
def command(name: str, run: str | None, output: str) -> None:
    """Show one of your jobs on this machine.

    \b
    Examples:
      mpijob get pi
      mpijob get pi -o yaml
    """
    finish(_get(name, run, output))


async def _get(name: str, run: str | None, output: str) -> None:
    found = await local_jobs.find(name, run)
    if output == "table":
        click.echo(printers.as_table([found]))
    else:
        click.echo(printers.as_text(printers.as_object(found), output))
