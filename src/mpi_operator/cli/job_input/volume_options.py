"""`--volume NAME=DIR`: directories of this machine in place of the volumes of a job."""

import copy
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from mpi_operator.api.types import ReplicaType
from mpi_operator.cli.command_errors import InvalidInput
from mpi_operator.cli.plain_text import printable
from mpi_operator.kube.resources import Manifest


def parsed(given: Iterable[str]) -> dict[str, Path]:
    """The directories by the names of volumes, each given as NAME=DIR."""
    found = {}
    for text in given:
        name, separator, path = text.partition("=")
        if not separator or not name or not path:
            raise InvalidInput(f"invalid --volume {text}: expected NAME=DIR, such as data=./data")
        if not Path(path).exists():
            raise InvalidInput(
                f"invalid --volume {text}: {path} does not exist", f"mkdir -p {path}  # creates it"
            )
        found[_name(name)] = Path(path).absolute()
    return found


def mapped(job: Manifest, directories: Mapping[str, Path]) -> Manifest:
    """A copy of a valid job with these directories as its volumes.

    A name is that of a claim or of a volume of a pod, or the path of a hostPath.
    """
    changed = copy.deepcopy(job)
    for pod in _pods(changed):
        volumes = pod.get("volumes") or ()
        if volumes:
            pod["volumes"] = [_mapped(each, directories) for each in volumes]
    return changed


def check_used(jobs: Iterable[Manifest], directories: Mapping[str, Path]) -> None:
    """InvalidInput if a name is not that of a volume."""
    volumes = [each for job in jobs for pod in _pods(job) for each in pod.get("volumes") or ()]
    known = dict.fromkeys(name for volume in volumes for name in _names(volume))
    for name in directories:
        if name not in known:
            has = f"volumes: {', '.join(known)}" if known else "no volumes"
            raise InvalidInput(f"invalid --volume {name}: no such volume; the job has {has}")


def _pods(job: Manifest) -> Iterator[Manifest]:
    roles = job["spec"]["mpiReplicaSpecs"]
    for role in ReplicaType:
        if role.value in roles:
            yield roles[role.value]["template"]["spec"]


def _mapped(volume: Manifest, directories: Mapping[str, Path]) -> Manifest:
    for name in _names(volume):
        if name in directories:
            return {"name": volume["name"], "hostPath": {"path": str(directories[name])}}
    return volume


def _names(volume: Manifest) -> Iterator[str]:
    """What `--volume` may call a volume, the most exact name first."""
    if claim := volume.get("persistentVolumeClaim"):
        yield printable(claim["claimName"])
    if source := volume.get("hostPath"):
        yield _name(source["path"])
    yield printable(volume["name"])


def _name(text: str) -> str:
    return os.path.normpath(text) if text.startswith("/") else text
