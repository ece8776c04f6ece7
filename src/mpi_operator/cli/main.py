"""`mpijob`: what people type."""

import importlib
import sys
from pathlib import Path

import click

from . import job_file

# For jobs that run already. Each is the `command` of the module of its name.
_VERBS = ("list", "get", "describe", "logs", "scale", "suspend", "resume", "delete", "image")


class Verbs(click.Group):
    """Loads a verb when it is wanted: `run` does not pay for the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *_VERBS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _VERBS:
            return super().get_command(ctx, cmd_name)
        command: click.Command = importlib.import_module(f"{__package__}.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches  # noqa: PLC0415 — `run` does not pay for it

            similar = get_close_matches(args[0], self.list_commands(ctx), n=1)
            hint = f" Did you mean {similar[0]!r}?" if similar else ""
            raise click.UsageError(f"{error.message}{hint}", ctx) from None


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: mpijob run examples/pi/pi.yaml",
)
def mpijob() -> None:
    """Run MPI jobs."""


@mpijob.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Change the job: workers=4, slots=2, or any field such as spec.runPolicy.backoffLimit=0.",
)
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="NAME=VALUE",
    help="A variable for launcher and workers.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Give up after so long, with exit code 124.",
)
@click.option(
    "--oversubscribe",
    is_flag=True,
    help="Run even if this machine has fewer CPUs or less memory than the job asks for.",
)
@click.option(
    "--sandbox",
    type=click.Choice(["namespaces", "plain"]),
    help="How pods are kept apart: by namespaces of Linux, or not at all (plain processes, whose "
    "paths are translated). The best that this machine can have, if not given.",
)
@click.option(
    "--keep",
    is_flag=True,
    help="Keep the directories of its pods (volumes, temporary files) until `mpijob delete`.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print only what the job prints.")
@click.option(
    "--output",
    "-o",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people, or one JSON object a line.",
)
def run(
    file: Path,
    settings: tuple[str, ...],
    variables: tuple[str, ...],
    timeout: float | None,
    oversubscribe: bool,
    sandbox: str | None,
    keep: bool,
    quiet: bool,
    output: str,
) -> None:
    """Run the job in FILE on this machine, and end with its exit code.

    \b
    Examples:
      mpijob run examples/pi/pi.yaml
      mpijob run job.yaml --set workers=4 --env STEPS=100
      mpijob run job.yaml --timeout 600 --keep
      mpijob run job.yaml -o json | jq .
    """
    # Here and not above, so that --help is there at once.
    from mpi_operator.local.sandbox.protocol import Kind  # noqa: PLC0415

    from . import run as running  # noqa: PLC0415
    from .output import Json, Plain  # noqa: PLC0415

    try:
        job = job_file.parse(sys.stdin.read(), "stdin") if str(file) == "-" else job_file.read(file)
        job = job_file.with_environment(job_file.with_settings(job, settings), variables)
        directory = Path.cwd() if str(file) == "-" else file.absolute().parent
        voice = Json() if output == "json" else Plain(is_quiet=quiet)
        kind = Kind(sandbox) if sandbox else None
        wishes = running.Wishes(timeout, oversubscribe, keep, kind)
        code = running.run(job, directory, wishes, voice)
    except job_file.UnusableFile as error:
        click.echo(f"mpijob: {error}", err=True)
        code = 2
    sys.exit(code)
