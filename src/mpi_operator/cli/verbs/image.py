"""`mpijob image check`: what an image lacks for use in an MPIJob."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from mpi_operator.api.launcher_transport import Transport
from mpi_operator.cli.command_errors import FAILURE, SUCCESS, InvalidInput
from mpi_operator.cli.format import table
from mpi_operator.cli.image_check import image_files
from mpi_operator.cli.image_check.image_contract import Finding, findings, is_usable
from mpi_operator.cli.image_check.image_files import Image, UnreadableImage
from mpi_operator.cli.known_jobs.printers import as_text

from . import arguments

_HEAD = ("RULE", "STATE", "FOUND")
_EXEC_HINT = "Jobs that start ranks by exec can use this image as it is: see --transport exec."


@click.group("image")
def image_command() -> None:
    """Check container images."""


@image_command.command("check")
@click.argument("image")
@click.option(
    "--transport",
    type=click.Choice([each.value for each in Transport]),
    default=Transport.SSH.value,
    show_default=True,
    help="How the jobs start ranks. exec is the default of API versions before v2beta1.",
)
@arguments.OUTPUT
def check(image: str, transport: str, output: str) -> None:
    """Check whether an MPIJob can use IMAGE.

    Prints what the image lacks, and what to add to its Dockerfile. IMAGE is an archive (docker
    save, buildah push docker-archive:…), a directory with the files of an image, or - for an
    archive on standard input. The exit code is 1 if no MPIJob can use the image in this way, and 2
    if it cannot be read.

    \b
    Examples:
      docker save my/image | mpijob image check -
      mpijob image check image.tar
      mpijob image check image.tar --transport exec
      mpijob image check ./rootfs -o json
    """
    opened = _open(image)
    found = findings(opened, Transport(transport))
    if output != "table":
        click.echo(as_text(_document(found), output))
    else:
        click.echo(_report(found))
        if not is_usable(found) and is_usable(findings(opened, Transport.EXEC)):
            click.echo(f"\n{_EXEC_HINT}")
    sys.exit(SUCCESS if is_usable(found) else FAILURE)


def _open(image: str) -> Image:
    path = Path(image)
    try:
        if image == "-":
            return image_files.of_archive(sys.stdin.buffer)
        if path.is_dir():
            return image_files.of_directory(path)
        if path.is_file():
            with path.open("rb") as stream:
                return image_files.of_archive(stream)
    except UnreadableImage as error:
        source = "standard input" if image == "-" else image
        raise InvalidInput(f"cannot read {source}: {error}", error.command) from error
    raise InvalidInput(
        f"cannot read {image}: no such file or directory",
        f"docker save {image} | mpijob image check -  # if it is the name of an image",
    )


def _report(found: Sequence[Finding]) -> str:
    rows = [(each.rule, each.state.value, each.detail) for each in found]
    remedies = [f"# {each.rule}: {each.detail}\n{each.remedy}" for each in found if each.remedy]
    parts = [table([_HEAD, *rows])]
    if remedies:
        parts.append("\n".join(["Add to the Dockerfile:", *remedies]))
    return "\n\n".join(parts)


def _document(found: Sequence[Finding]) -> dict[str, object]:
    return {
        "usable": is_usable(found),
        "findings": [asdict(finding) | {"state": finding.state.value} for finding in found],
    }
