"""`mpijob` and its verbs."""

import importlib
from contextlib import suppress
from typing import Any

import click

from mpi_operator import __version__

# The module of each verb, and what the verb does. The verb itself is its `<verb>_command`.
_VERBS = {
    "run": ("run", "Run a program, or the job in FILE, on this machine."),
    "list": ("get", "List your jobs on this machine."),
    "get": ("get", "Show one job."),
    "describe": ("describe", "Show the state, pods and events of a job."),
    "logs": ("logs", "Print the log of the launcher, of a worker, or of all pods."),
    "wait": ("wait", "Wait until a job ends, and exit with its exit code."),
    "exec": ("exec", "Run COMMAND in the launcher or in a worker of a running job."),
    "scale": ("scale", "Change the number of workers of a job."),
    "suspend": ("suspend", "Suspend a job: delete its pods until `mpijob resume`."),
    "resume": ("suspend", "Resume a suspended job."),
    "delete": ("delete", "Delete a job."),
    "validate": ("validate", "Check the MPIJobs in files without running them."),
    "convert": ("convert", "Convert MPIJobs from one API version to another."),
    "image": ("image", "Check container images."),
    "install": ("install", "Install the operator on the current cluster."),
    "upgrade": ("install", "Upgrade the operator on the current cluster."),
    "uninstall": ("uninstall", "Uninstall the operator from the current cluster."),
    "version": ("version", "Show the versions of this program, of the operator, and of the API."),
}


class Verbs(click.Group):
    """Imports a verb when it is used, so that `run` does not pay for the others."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a verb. An error that cannot be printed keeps its exit code."""
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            with suppress(OSError):  # standard error is full, or has no reader
                error.show()
            ctx.exit(error.exit_code)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_VERBS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _VERBS:
            return None
        module = importlib.import_module(f"{__package__}.verbs.{_VERBS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_text) for name, (_, help_text) in _VERBS.items()])

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
    epilog="Example: mpijob run -np 4 python train.py",
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def mpijob() -> None:
    """Run MPI jobs on this machine, check files and images, and install the operator."""
