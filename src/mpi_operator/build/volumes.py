"""The volumes that the operator adds to the main container, next to the user's own."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, count
from posixpath import normpath
from typing import NamedTuple

from mpi_operator.kube.resources import Manifest

# Of all volumes that are added to any pod: mounts of the user's own may refer to them.
ADDED_NAMES = frozenset(("mpi-job-config", "mpi-job-environment", "mpi-job-kubectl", "ssh-auth"))


@dataclass(frozen=True)
class Volume:
    """A volume and its mount path in the main container."""

    name: str
    source: Manifest
    mount_path: str


class AddedVolumes(NamedTuple):
    """The volumes and mounts to add to those of a pod."""

    volumes: list[Manifest]
    mounts: list[Manifest]


def added_volumes(
    volumes: Iterable[Volume], pod_spec: Manifest, container: Manifest
) -> AddedVolumes:
    """Our volumes and mounts, adapted to those of the pod and of its main container:

    - If the user mounts something at our path, that mount stays. Our volume is added, because
      this mount and those of sidecars may refer to it.
    - If the user has a volume with our name, ours gets another name.
    - If both, nothing is added: the user has taken care of it.
    """
    result = AddedVolumes([], [])
    names = {volume["name"] for volume in pod_spec.get("volumes") or ()}
    mounts = container.get("volumeMounts") or ()
    paths = {normpath(mount["mountPath"]) for mount in mounts}
    for volume in volumes:
        is_mounted = normpath(volume.mount_path) in paths
        if is_mounted and volume.name in names:
            continue
        name = _free_name(volume.name, names)
        result.volumes.append({"name": name, **volume.source})
        if not is_mounted:
            result.mounts.append({"name": name, "mountPath": volume.mount_path})
    return result


def _free_name(name: str, taken: set[str]) -> str:
    candidates = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(candidate for candidate in candidates if candidate not in taken)
