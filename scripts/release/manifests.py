"""The manifests: the one file that most people apply, and all forms as an archive."""

import shutil
from pathlib import Path

from scripts.release import archives
from scripts.release.source import Source

_ELSEWHERE = ("chart", "images")  # they are released in a form of their own


def write(source: Source, directory: Path) -> None:
    """Write both."""
    deploy = source.directory / "deploy"
    directory.mkdir(parents=True)
    shutil.copyfile(deploy / "v2beta1/mpi-operator.yaml", directory / "mpi-operator.yaml")
    files = {
        path.relative_to(source.directory).as_posix(): path
        for path in deploy.rglob("*")
        if path.is_file() and path.relative_to(deploy).parts[0] not in _ELSEWHERE
    }
    archives.write(
        directory / f"mpi-operator-{source.version}-manifests.tar.gz", files, source.epoch
    )
