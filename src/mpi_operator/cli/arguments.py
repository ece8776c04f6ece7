"""Arguments that several verbs share."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

NAME = click.argument("name")
RUN = click.option(
    "--run",
    metavar="ID",
    help="Select the run if several jobs have this name; see `mpijob list`.",
)
OUTPUT = click.option(
    "--output",
    "-o",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="Print a table, or whole objects for programs.",
)


_PER_NODE = (
    ("--gpus-per-node", "gpus"),
    ("--processing-units-per-node", "processingUnits"),
)


def unit_options(command: F) -> F:
    """How the totals of v1alpha1 are split into workers; flags and defaults of the operator."""
    for name, field in _PER_NODE:
        command = click.option(
            name,
            type=click.IntRange(min=1),
            default=1,
            show_default=True,
            metavar="N",
            help=f"Split `{field}` of a v1alpha1 job into workers with N each.",
        )(command)
    return click.option(
        "--processing-resource-type",
        type=click.Choice(["nvidia.com/gpu", "cpu"]),
        default="nvidia.com/gpu",
        show_default=True,
        help="What the units of a v1alpha1 job are if it does not say.",
    )(command)
