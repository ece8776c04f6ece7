"""`mpijob suspend`: have a job wait."""

import click

from . import arguments
from .outcome import finish
from .suspension import set_suspended


@click.command("suspend")
@arguments.NAME
@arguments.RUN
def command(name: str, run: str | None) -> None:
    """Suspend a job.

    Its pods end; `mpijob resume` starts it anew.

    \b
    Example:
      mpijob suspend pi
    """
    finish(_suspend(name, run))


async def _suspend(name: str, run: str | None) -> None:
    is_new = await set_suspended(name, run, suspended=True)
    click.echo(f"{name} is suspended" if is_new else f"{name} was suspended already")
