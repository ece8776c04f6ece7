"""PersistentVolumeClaims as directories of this user's state, kept between runs."""

from collections.abc import Iterable
from pathlib import Path

from mpi_operator.api.types import MPIJob
from mpi_operator.kube.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, Manifest

from .references import pod_specs, references


def directory_of(run: Path) -> Path:
    """The directory of all claims that belongs to a run."""
    return run.parent.parent / "volumes"


def make_directory(run: Path) -> Path:
    """The same, created if it does not exist. No other user can enter it."""
    directory = directory_of(run)
    directory.mkdir(mode=0o700, exist_ok=True)
    return directory


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


def bound(claim: Manifest, volume: str) -> Manifest:
    """A claim that is bound to a volume."""
    spec = {**(claim.get("spec") or {}), "volumeName": volume}
    return {**claim, "spec": spec}


def volume(claim: Manifest, directory: Path) -> Manifest:
    """The volume of a claim: a directory, made when a pod first mounts it."""
    name = claim["metadata"]["name"]
    return {
        "apiVersion": PERSISTENT_VOLUMES.api_version,
        "kind": PERSISTENT_VOLUMES.kind,
        "metadata": {"name": name},
        "spec": {"hostPath": {"path": str(directory / name), "type": "DirectoryOrCreate"}},
    }
