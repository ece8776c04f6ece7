"""`mpijob run`: run a job on this machine, from its file to its exit code."""

import sys
from pathlib import Path
from typing import Any

import click

from . import arguments
from .duration import Duration


@click.command("run")
@click.argument("file", type=click.Path(path_type=Path))
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
@arguments.unit_options
@click.option("--quiet", "-q", is_flag=True, help="Print only the output of the job.")
@click.option(
    "--output",
    "-o",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Print text, or one JSON object per line for programs.",
)
def run_command(
    file: Path,
    settings: tuple[str, ...],
    variables: tuple[str, ...],
    config_maps: tuple[str, ...],
    secret_files: tuple[str, ...],
    timeout: float | None,
    oversubscribe: bool,
    sandbox: str | None,
    keep: bool,
    quiet: bool,
    output: str,
    **units: Any,
) -> None:
    """Run the job in FILE on this machine.

    FILE is a YAML file with one MPIJob of any API version, and the ConfigMaps and Secrets that it
    needs, or - for standard input. The exit code is that of the launcher, or 2 if the job cannot
    start, 124 after --timeout, 130 after Ctrl-C.

    \b
    Examples:
      mpijob run examples/pi/pi.yaml
      mpijob run job.yaml --set workers=4 --env STEPS=100
      mpijob run job.yaml --timeout 10m --keep
      mpijob run job.yaml -o json | jq .
    """
    # Imported here, so that --help prints at once.
    from mpi_operator.local.sandbox.protocol import Kind  # noqa: PLC0415

    from . import job_file, runner  # noqa: PLC0415
    from .output import JsonOutput, TextOutput  # noqa: PLC0415

    changes = job_file.Changes(settings, variables, units, config_maps, secret_files)
    workload = job_file.load(file, changes)
    kind = Kind(sandbox) if sandbox else None
    options = runner.Options(timeout, oversubscribe, keep, kind)
    out = JsonOutput() if output == "json" else TextOutput(is_quiet=quiet)
    for warning in (each for job in workload.jobs for each in job.warnings):
        out.notice(f"warning: {warning}")
    for notice in workload.notices:
        out.notice(notice)
    sys.exit(runner.run(workload, options, out))
