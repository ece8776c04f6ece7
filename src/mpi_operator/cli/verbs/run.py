"""`mpijob run`: run a job on this machine, from its file to its exit code."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from mpi_operator.cli.duration import Duration

from . import arguments


class _RunCommand(click.Command):
    """Leaves everything after a program to the program; options may follow a file."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _errors_as(_output_in(args)):
            return self._parsed(ctx, args)

    def _parsed(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.allow_interspersed_args = False
        try:
            before, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        except click.NoSuchOption as error:
            if error.option_name != "-n":  # which means ranks to mpirun
                raise
            raise click.UsageError("No such option '-n': -np sets the number of ranks.") from error
        is_program = bool(before.keys() & {"ranks", "workers"})
        ctx.allow_interspersed_args = not is_program
        rest = super().parse_args(ctx, args)
        if not is_program and (ctx.params.get("ranks") or ctx.params.get("workers")):
            raise click.UsageError("-np and --workers must come before the program.", ctx)
        return rest


def _output_in(args: Sequence[str]) -> str | None:
    """The value of `-o` in words that may not be valid otherwise."""
    for word, following in zip(args, [*args, ""][1:], strict=True):
        if word == "--":
            break
        if word in ("-o", "--output"):
            return following
        for option in ("--output=", "-o"):
            if word.startswith(option):
                return word.removeprefix(option)
    return None


@click.command("run", cls=_RunCommand, options_metavar="[OPTIONS]")
@click.argument(
    "words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="FILE | PROGRAM [ARGUMENTS]…"
)
@click.option(
    "-np",
    "--np",
    "ranks",
    type=click.IntRange(min=1),
    metavar="N",
    help="Run PROGRAM with N ranks, without a file.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    show_default="none: all ranks run in the launcher",
    help="Spread the ranks of PROGRAM over N workers.",
)
@click.option(
    "--slots",
    type=click.IntRange(min=1),
    metavar="N",
    show_default="as many as needed",
    help="Run up to N ranks of PROGRAM on each worker.",
)
@click.option(
    "--gpus",
    type=click.IntRange(min=0),
    metavar="N",
    help="Give each worker N GPUs, or the launcher if that runs the ranks; 0 for none.",
)
@click.option(
    "--mpi",
    type=click.Choice(["openmpi", "mpich", "intel"]),
    show_default="the first on the PATH",
    help="The MPI that runs PROGRAM.",
)
@click.option(
    "--image",
    metavar="IMAGE",
    help="The image of PROGRAM on a cluster, for --dry-run. Images are not used here.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print the MPIJob instead of running it, in the format of -o yaml or -o json.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a field of the job: workers=4, slots=2, or a path such as "
    "spec.runPolicy.backoffLimit=0. Can be repeated.",
)
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set an environment variable in the launcher and the workers. Can be repeated.",
)
@click.option(
    "--configmap",
    "config_maps",
    multiple=True,
    metavar="NAME[:KEY]=PATH",
    help="Create a ConfigMap from the files of a directory, or from one file. Can be repeated.",
)
@click.option(
    "--secret-file",
    "secret_files",
    multiple=True,
    metavar="NAME[:KEY]=PATH",
    help="Create a Secret from a file, or from the files of a directory. Can be repeated.",
)
@click.option(
    "--volume",
    "volumes",
    multiple=True,
    metavar="NAME=DIR",
    help="Mount a directory in place of a claim, a volume or a hostPath. Can be repeated.",
)
@click.option(
    "--timeout",
    type=Duration(),
    metavar="DURATION",
    show_default="no limit",
    help="Stop the job after this time, such as 90, 10m or 1h, and exit with code 124.",
)
@click.option(
    "--oversubscribe",
    is_flag=True,
    help="Run even if the job requests more CPUs or memory than this machine has.",
)
@click.option(
    "--sandbox",
    type=click.Choice(["namespaces", "plain"]),
    show_default="the best available",
    help="Isolate pods by Linux namespaces, or run them as plain processes with translated paths.",
)
@click.option(
    "--keep",
    is_flag=True,
    help="Keep the directories of the pods (volumes, temporary files) until `mpijob delete`.",
)
@click.option(
    "--detach",
    "-d",
    is_flag=True,
    help="Run the job in the background, also after this terminal is closed. Use `mpijob wait`, "
    "`logs` and `delete` to follow and stop it.",
)
@arguments.unit_options
@click.option("--quiet", "-q", is_flag=True, help="Print only the output of the job, and errors.")
@click.option(
    "--prefix",
    type=click.Choice(["auto", "none", "pod", "rank"]),
    default="auto",
    show_default=True,
    help="Print the pod or the rank in front of each line. auto: the pod on a terminal, else none.",
)
@click.option("--timestamps", is_flag=True, help="Print the time in front of each line.")
@click.option(
    "--output",
    "-o",
    type=click.Choice(["text", "json", "yaml"]),
    show_default="text; yaml with --dry-run",
    help="Print text, or one JSON object per line for programs; with --dry-run YAML or JSON.",
)
def run_command(
    words: tuple[str, ...],
    settings: tuple[str, ...],
    variables: tuple[str, ...],
    config_maps: tuple[str, ...],
    secret_files: tuple[str, ...],
    volumes: tuple[str, ...],
    timeout: float | None,
    oversubscribe: bool,
    sandbox: str | None,
    keep: bool,
    detach: bool,
    quiet: bool,
    prefix: str,
    timestamps: bool,
    output: str | None,
    dry_run: bool,
    ranks: int | None,
    workers: int | None,
    slots: int | None,
    gpus: int | None,
    mpi: str | None,
    image: str | None,
    **units: Any,
) -> None:
    """Run a program, or the job in FILE, on this machine.

    With -np or --workers the argument is a program, and everything after it belongs to the
    program. Otherwise it is a YAML file, or - for standard input, with MPIJobs of any API version
    and the ConfigMaps, Secrets and PersistentVolumeClaims that they need. The exit code is that of
    the launcher, or 2 if the job cannot start, 124 after --timeout, 130 after Ctrl-C.

    \b
    Examples:
      mpijob run -np 4 python train.py
      mpijob run --workers 2 --slots 2 --mpi mpich -- ./a.out --steps 100
      mpijob run -np 4 --image example.com/train:1 --dry-run python train.py > job.yaml
      mpijob run examples/pi/pi.yaml
      mpijob run job.yaml --set workers=4 --env STEPS=100
      mpijob run job.yaml --volume data=./data --configmap train=./config
      mpijob run job.yaml --timeout 10m --keep
      mpijob run job.yaml -o json | jq .
      mpijob run job.yaml --detach && mpijob wait pi
    """
    # Imported here, so that --help prints at once.
    from mpi_operator.cli.job_input.run_arguments import Display, RunArguments, Shape  # noqa: PLC0415
    from mpi_operator.cli.job_input.workload import Changes  # noqa: PLC0415
    from mpi_operator.cli.running import run_verb  # noqa: PLC0415

    shape = Shape(ranks, workers, slots, gpus)
    changes = Changes(settings, variables, units, config_maps, secret_files, volumes, gpus)
    run_arguments = RunArguments(words, shape, changes, mpi, image, dry_run)
    display = Display(output, prefix, timestamps, quiet, detach)
    options = run_verb.Options(timeout, oversubscribe, sandbox, keep)
    with _errors_as(output):
        code = run_verb.execute(run_arguments, display, options)
    sys.exit(code)


@contextmanager
def _errors_as(output: str | None) -> Iterator[None]:
    """Print errors as JSON, if that is the output."""
    try:
        yield
    except click.ClickException as error:
        if output != "json":
            raise
        from mpi_operator.cli.command_errors import CommandError  # noqa: PLC0415
        from mpi_operator.cli.job_output.output import JsonOutput  # noqa: PLC0415

        advice = error.command if isinstance(error, CommandError) else ""
        JsonOutput().error(error.format_message(), error.exit_code, advice)
        sys.exit(error.exit_code)
