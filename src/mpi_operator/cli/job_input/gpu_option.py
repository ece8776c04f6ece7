"""`--gpus`: the GPUs of each pod that runs ranks, in the job of a file."""

import copy

from mpi_operator.api.types import ReplicaType
from mpi_operator.cli.manifests.manifest_values import get
from mpi_operator.kube.resources import Manifest
from mpi_operator.local.kubelet.capacity import GPU

from .environment import main_container


def with_gpus(job: Manifest, count: int | None) -> Manifest:
    """A copy in which the main container of each such pod has that many GPUs; 0 for none."""
    changed = copy.deepcopy(job)
    for role in _roles(changed) if count is not None else ():
        container = main_container(changed, role)
        if container is not None:
            container["resources"] = _resources(container.get("resources"), count or 0)
    return changed


def _roles(job: Manifest) -> list[ReplicaType]:
    """The roles that run ranks."""
    has_workers = get(job, "spec", "mpiReplicaSpecs", "Worker") is not None
    is_worker = get(job, "spec", "runLauncherAsWorker") is True
    launchers = [ReplicaType.LAUNCHER] if is_worker else []
    return [*launchers, *([ReplicaType.WORKER] if has_workers else [])]


def _resources(before: object, count: int) -> Manifest:
    known = before if isinstance(before, dict) else {}
    amounts = {name: known[name] for name in ("limits", "requests") if known.get(name)}
    others = {
        name: {key: value for key, value in each.items() if key != GPU}
        for name, each in amounts.items()
    }
    result: Manifest = {**known, **others}
    if count:
        result["limits"] = {**(result.get("limits") or {}), GPU: count}
    return result
