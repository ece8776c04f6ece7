"""`mpijob validate`: check files without running them."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from mpi_operator.api.conversion import UnitSettings
from mpi_operator.cli.command_errors import FAILURE, INVALID_INPUT, SUCCESS, InvalidInput
from mpi_operator.cli.format import counted
from mpi_operator.cli.job_input import file_check
from mpi_operator.cli.job_input.file_check import Problem
from mpi_operator.cli.manifests import manifest_files, manifest_text
from mpi_operator.cli.manifests.manifest_files import source_name

from . import arguments


class _Result(NamedTuple):
    """What was found in all files."""

    files: int
    jobs: int
    problems: Sequence[Problem]
    unreadable: Sequence[str]
    """Why files could not be read or parsed."""

    def exit_code(self, *, is_strict: bool) -> int:
        if self.unreadable:
            return INVALID_INPUT
        return FAILURE if any(each.is_error or is_strict for each in self.problems) else SUCCESS


@click.command("validate")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE…")
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option(
    "--output",
    "-o",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Print one line per problem, or one JSON object for programs.",
)
@arguments.unit_options
def validate_command(files: tuple[Path, ...], strict: bool, output: str, **units: Any) -> None:
    """Check the MPIJobs in files without running them.

    FILE is a YAML or JSON file, a directory with everything below it, or - for standard input.
    These are errors: anything that the operator would refuse, in any API version; mounts of volumes
    that do not exist; duplicate keys and names. These are warnings: unknown fields; settings
    without effect; objects of other kinds.

    \b
    Exit codes:
      0  every job is valid
      1  a job is invalid, or there is a warning and --strict
      2  a file cannot be read or parsed

    \b
    Examples:
      mpijob validate job.yaml
      mpijob validate jobs/ --strict
      mpijob run -np 4 --dry-run python train.py | mpijob validate -
    """
    result = _check(files, UnitSettings(**units))
    _print(result, output)
    sys.exit(result.exit_code(is_strict=strict))


def _check(paths: Sequence[Path], units: UnitSettings) -> _Result:
    jobs, problems, unreadable = 0, list[Problem](), list[str]()
    files = [*_files(paths, unreadable)]
    for path in files:
        try:
            found = file_check.check(manifest_files.read(path), source_name(path), units)
        except InvalidInput as error:
            unreadable.append(error.message)
        else:
            jobs += found.jobs
            problems += found.problems
    return _Result(len(files), jobs, problems, unreadable)


def _files(paths: Sequence[Path], unreadable: list[str]) -> Iterator[Path]:
    for path in paths:
        try:
            yield from manifest_files.files_in(path) if path.is_dir() else [path]
        except InvalidInput as error:
            unreadable.append(error.message)


def _print(result: _Result, output: str) -> None:
    if output == "json":
        click.echo(manifest_text.as_json(_as_object(result)), nl=False)
        return
    for problem in result.problems:
        click.echo(problem)
    for why in result.unreadable:
        click.echo(f"mpijob: {why}", err=True)
    errors = sum(each.is_error for each in result.problems) + len(result.unreadable)
    warnings = sum(not each.is_error for each in result.problems)
    click.echo(
        f"{counted(result.jobs, 'job')} in {counted(result.files, 'file')}:"
        f" {counted(errors, 'error')}, {counted(warnings, 'warning')}"
    )


def _as_object(result: _Result) -> dict[str, Any]:
    return {
        "files": result.files,
        "jobs": result.jobs,
        "problems": [
            {
                "severity": "error" if each.is_error else "warning",
                "file": each.file,
                "line": each.line,
                "object": each.object,
                "field": each.field,
                "message": each.message,
            }
            for each in result.problems
        ],
        "unreadable": [*result.unreadable],
    }
