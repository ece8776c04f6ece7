"""The commit that is released, and its files."""

import io
import re
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path


class NotReleasable(Exception):
    """The checkout is not in a state that can be released; the message says why."""


@dataclass(frozen=True)
class Source:
    """An export of one commit: no file that is ignored or not tracked can slip in."""

    directory: Path
    version: str
    epoch: int
    """When it was committed, in seconds: the time of all files in the archives."""


def export(checkout: Path, directory: Path, tag: str = "") -> Source:
    """Write the files of the current commit to a directory."""
    if changes := _git(checkout, "status", "--porcelain").decode():
        raise NotReleasable(f"There are uncommitted changes:\n{changes.rstrip()}")
    with tarfile.open(fileobj=io.BytesIO(_git(checkout, "archive", "HEAD"))) as archive:
        archive.extractall(directory, filter="data")
    version = _version(directory)
    if tag and tag != f"v{version}":
        raise NotReleasable(f"The tag is {tag}, but the version is {version}")
    epoch = int(_git(checkout, "log", "-1", "--format=%ct"))
    return Source(directory, version, epoch)


def _version(directory: Path) -> str:
    text = (directory / "src/mpi_operator/__init__.py").read_text()
    [version] = re.findall(r'^__version__ = "(.+?)"', text, re.MULTILINE)
    return str(version)


def _git(checkout: Path, *arguments: str) -> bytes:
    command = ["git", "-C", str(checkout), *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
