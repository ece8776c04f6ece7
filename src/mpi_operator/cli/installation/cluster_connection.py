"""The cluster that a verb works on: the options that choose it, and the connection."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from mpi_operator import __version__
from mpi_operator.cli.command_errors import CommandError
from mpi_operator.kube import config
from mpi_operator.kube.http import HttpClient

F = TypeVar("F", bound=Callable[..., Any])


class Chosen(NamedTuple):
    """Which cluster, as the user chose it."""

    kubeconfig: Path | None
    context: str | None


def cluster_options(command: F) -> F:
    """Add the options of kubectl that choose a cluster."""
    context = click.option(
        "--context", metavar="NAME", show_default="the current one", help="Use this context."
    )
    kubeconfig = click.option(
        "--kubeconfig",
        type=click.Path(path_type=Path, dir_okay=False),
        show_default="KUBECONFIG, else ~/.kube/config",
        help="Use this kubeconfig.",
    )
    return kubeconfig(context(command))


@asynccontextmanager
async def connected(chosen: Chosen) -> AsyncIterator[HttpClient]:
    """A client of that cluster."""
    try:
        found = config.load(kubeconfig=chosen.kubeconfig, context=chosen.context)
    except config.ConfigError as error:
        raise CommandError(f"cannot connect to a cluster: {error}") from error
    async with HttpClient(found, user_agent=f"mpijob/{__version__}") as client:
        yield client
