"""`mpijob` and its verbs."""

import importlib

import click

from mpi_operator import __version__

# The module of each verb. The verb itself is its `<verb>_command`.
_MODULES = {
    "run": "run",
    "list": "get",
    "get": "get",
    "describe": "describe",
    "logs": "logs",
    "scale": "scale",
    "suspend": "suspend",
    "resume": "suspend",
    "delete": "delete",
    "validate": "validate",
    "convert": "convert",
    "image": "image",
}


class Verbs(click.Group):
    """Imports a verb when it is used, so that `run` does not pay for the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_MODULES]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _MODULES:
            return None
        module = importlib.import_module(f"{__package__}.{_MODULES[cmd_name]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches  # noqa: PLC0415 — only after a typing error

            similar = get_close_matches(args[0], self.list_commands(ctx), n=1)
            hint = f" Did you mean {similar[0]!r}?" if similar else ""
            raise click.UsageError(f"{error.message}{hint}", ctx) from None


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: mpijob run examples/pi/pi.yaml",
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def mpijob() -> None:
    """Run MPI jobs on this machine, manage them, and check and convert files and images."""
