"""The key of an image: a hash of all its inputs."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from devcluster import binaries
from devcluster.image_builds import debian
from devcluster.image_builds.catalog import CHECKOUT, IMAGES, Image


def key_of(image: Image) -> str:
    """A key that changes with any input of the image."""
    digest = hashlib.sha256()
    for part in _parts(image):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:12]


def _parts(image: Image) -> Iterator[bytes]:
    yield repr((image.tags, sorted(image.arguments.items()), debian.recipe(image.suite))).encode()
    for need in image.needs:
        yield key_of(IMAGES[need]).encode()
    for program in image.programs:
        yield str(binaries.TOOLS[program].path.parent.name).encode()
    for path in image.files():
        yield from (str(path.relative_to(CHECKOUT)).encode(), path.read_bytes(), _mode(path))


def _mode(path: Path) -> bytes:
    return b"x" if path.stat().st_mode & 0o100 else b"-"
