"""Arguments that several verbs share."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mpi_operator.cli.command_errors import CommandError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from mpi_operator.cli.known_jobs.local_jobs import LocalJob

F = TypeVar("F", bound=Callable[..., Any])


def _complete_names(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    from . import completion  # noqa: PLC0415 — only a shell needs it

    return completion.names(incomplete)


def _complete_runs(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    from . import completion  # noqa: PLC0415

    return completion.runs(incomplete, ctx.params.get("name"))


NAME = click.argument("name", shell_complete=_complete_names)
OPTIONAL_NAME = click.argument("name", required=False, shell_complete=_complete_names)
RUN = click.option(
    "--run",
    metavar="ID",
    shell_complete=_complete_runs,
    help="Select the run if several jobs have this name; see `mpijob list`.",
)
WORKER = click.option(
    "--worker",
    "-w",
    type=click.IntRange(min=0),
    metavar="N",
    show_default="the launcher",
    help="Select worker N instead of the launcher.",
)
OUTPUT = click.option(
    "--output",
    "-o",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="Print a table, or whole objects for programs.",
)


def check_worker(found: "LocalJob", worker: int) -> None:
    """CommandError if a job has no such worker."""
    count = found.job.spec.worker_count
    if worker >= count:
        raise CommandError(f"no worker {worker} in {found}: {_workers(count)}")


def _workers(count: int) -> str:
    match count:
        case 0:
            return "it has no workers"
        case 1:
            return "its only worker is 0"
        case _:
            return f"its workers are 0 to {count - 1}"


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
            help=f"Divide `{field}` of a v1alpha1 job among workers with up to N each.",
        )(command)
    return click.option(
        "--processing-resource-type",
        type=click.Choice(["nvidia.com/gpu", "cpu"]),
        default="nvidia.com/gpu",
        show_default=True,
        help="Count the `processingUnits` of a v1alpha1 job as this, if it names no resource.",
    )(command)
