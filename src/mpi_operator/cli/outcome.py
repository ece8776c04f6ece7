"""How a verb ends: well, or with exit code 1 and a sentence."""

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any

import click

from mpi_operator.kube import errors

FAILED = 1


class Refusal(Exception):
    """What was asked for cannot be done; the sentence says why."""


def finish(work: Coroutine[Any, Any, None]) -> None:
    """Do the work of a verb."""
    try:
        asyncio.run(work)
    except (Refusal, errors.KubeError) as error:
        click.echo(f"mpijob: {error}", err=True)
        sys.exit(FAILED)
