"""What is mounted into the first container of a pod, and how it gets along with the user's."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, count
from posixpath import normpath
from typing import NamedTuple

from mpi_operator.kube.resources import Manifest


@dataclass(frozen=True)
class Volume:
    """A volume, and where the first container finds it."""

    name: str
    source: Manifest
    mount_path: str


class Added(NamedTuple):
    """What a pod gets on top of its own."""

    volumes: list[Manifest]
    mounts: list[Manifest]


def added(volumes: Iterable[Volume], pod_spec: Manifest) -> Added:
    """Ours, so that nothing of the user's is lost:

    - The user mounts something at our path: theirs stays. Our volume is still there, for this
      mount and those of sidecars may be of it.
    - The user has a volume of our name: ours takes another name.
    - Both: the user has taken care of it, and nothing is added.
    """
    result = Added([], [])
    names = {volume["name"] for volume in pod_spec.get("volumes") or ()}
    mounts = pod_spec["containers"][0].get("volumeMounts") or ()
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
