"""Creates what the jobs of a run need, before they are created."""

from collections.abc import Iterable
from pathlib import Path

from mpi_operator.kube.client import Client
from mpi_operator.kube.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, Manifest

from . import claims
from .file_objects import CREATED


async def create(cluster: Client, objects: Iterable[Manifest], run: Path) -> None:
    """Create ConfigMaps, Secrets and claims; each claim is bound to a directory."""
    for each in objects:
        manifest = each
        if each["kind"] == PERSISTENT_VOLUME_CLAIMS.kind:
            directory = claims.make_directory(run)
            volume = await cluster.create(PERSISTENT_VOLUMES, claims.volume(each, directory))
            manifest = claims.bound(each, volume["metadata"]["name"])
        await cluster.create(CREATED[each["kind"]], manifest)
