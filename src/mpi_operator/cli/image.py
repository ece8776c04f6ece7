"""`mpijob image check`: what an image misses for use in an MPIJob."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from . import arguments, image_files
from .format import table
from .image_contract import Finding, State, findings
from .image_files import Image, UnreadableImage
from .outcome import FAILED
from .printers import as_text

_HEAD = ("RULE", "STATE", "FOUND")


@click.group("image")
def command() -> None:
    """Look at images."""


@command.command("check")
@click.argument("image")
@arguments.OUTPUT
def check(image: str, output: str) -> None:
    """Tell what IMAGE misses for use in an MPIJob, and what to add to its Dockerfile.

    IMAGE is an archive (docker save, buildah push docker-archive:…), a directory with the files of
    an image, or - for an archive on standard input. Ends with 1 if no MPIJob could use it.

    \b
    Examples:
      docker save my/image | mpijob image check -
      mpijob image check image.tar
      mpijob image check ./rootfs -o json
    """
    try:
        found = findings(_open(image))
    except UnreadableImage as error:
        click.echo(f"mpijob: {image}: {error}", err=True)
        sys.exit(2)
    click.echo(_told(found) if output == "table" else as_text(_document(found), output))
    sys.exit(FAILED if any(finding.state is State.MISSING for finding in found) else 0)


def _open(image: str) -> Image:
    if image == "-":
        return image_files.of_archive(sys.stdin.buffer)
    path = Path(image)
    if path.is_dir():
        return image_files.of_directory(path)
    if path.is_file():
        with path.open("rb") as stream:
            return image_files.of_archive(stream)
    raise UnreadableImage(
        "there is no such file or directory. For an image of a container engine:"
        f" docker save {image} | mpijob image check -"
    )


def _told(found: Sequence[Finding]) -> str:
    rows = [(each.rule, each.state.value, each.detail) for each in found]
    remedies = [f"# {each.rule}: {each.detail}\n{each.remedy}" for each in found if each.remedy]
    parts = [table([_HEAD, *rows])]
    if remedies:
        parts.append("\n".join(["For the Dockerfile:", *remedies]))
    return "\n\n".join(parts)


def _document(found: Sequence[Finding]) -> dict[str, object]:
    usable = all(finding.state is not State.MISSING for finding in found)
    return {
        "usable": usable,
        "findings": [asdict(finding) | {"state": finding.state.value} for finding in found],
    }
