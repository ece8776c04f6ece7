"""The container images as archives, which `docker load` and `ctr image import` read."""

from collections.abc import Sequence
from pathlib import Path

from devcluster import image_builds
from scripts.release import archives


def write(names: Sequence[str], directory: Path, epoch: int) -> list[Path]:
    """Write the archives of these images; missing ones are built, which needs root."""
    built = image_builds.provide(names) if names else {}
    written = []
    for name, archive in built.items():
        target = directory / f"{name}.tar.gz"
        archives.compress(archive, target, epoch)
        written.append(target)
    return written
