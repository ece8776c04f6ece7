"""PersistentVolumeClaims as directories of this user's state, kept between runs."""

from collections.abc import Iterable
from pathlib import Path

from mpi_operator.api.types import MPIJob
from mpi_operator.cli.job_input.references import pod_specs, references
from mpi_operator.kube.client import Client
from mpi_operator.kube.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, Manifest


def directory_of(run: Path) -> Path:
    """The directory of all claims that belongs to a run."""
    return run.parent.parent / "volumes"


def used(jobs: Iterable[MPIJob], objects: Iterable[Manifest]) -> list[Manifest]:
    """The claims among some objects that pods of these jobs mount."""
    names = {
        each.name
        for job in jobs
        for pod in pod_specs(job).values()
        for each in references(pod)
        if each.resource == PERSISTENT_VOLUME_CLAIMS
    }
    claims = (each for each in objects if each["kind"] == PERSISTENT_VOLUME_CLAIMS.kind)
    return [each for each in claims if each["metadata"]["name"] in names]


async def create(cluster: Client, claim: Manifest, run: Path) -> None:
    """Create a claim, bound to a directory that no other user can enter."""
    directory = directory_of(run)
    directory.mkdir(mode=0o700, exist_ok=True)
    volume = await cluster.create(PERSISTENT_VOLUMES, _volume(claim, directory))
    spec = {**(claim.get("spec") or {}), "volumeName": volume["metadata"]["name"]}
    await cluster.create(PERSISTENT_VOLUME_CLAIMS, {**claim, "spec": spec})


def _volume(claim: Manifest, directory: Path) -> Manifest:
    """The volume of a claim: a directory, made when a pod first mounts it."""
    name = claim["metadata"]["name"]
    return {
        "apiVersion": PERSISTENT_VOLUMES.api_version,
        "kind": PERSISTENT_VOLUMES.kind,
        "metadata": {"name": name},
        "spec": {"hostPath": {"path": str(directory / name), "type": "DirectoryOrCreate"}},
    }
