"""`mpijob resume`: have a suspended job start again."""

import click

from . import arguments
from .outcome import finish
from .suspension import set_suspended


@click.command("resume")
@arguments.NAME
@arguments.RUN
def command(name: str, run: str | None) -> None:
    """Resume a suspended job. It starts anew.

    \b
    Example:
      mpijob resume pi
    """
    finish(_resume(name, run))


async def _resume(name: str, run: str | None) -> None:
    is_new = await set_suspended(name, run, suspended=False)
    click.echo(f"{name} is resumed" if is_new else f"{name} was not suspended")
