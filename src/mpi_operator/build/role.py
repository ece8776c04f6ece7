"""The Role of a launcher that starts processes in its workers by exec."""

from collections.abc import Iterable

from mpi_operator.api import MPIJob, labels, names
from mpi_operator.kube.resources import ROLES, Manifest

from .ownership import metadata

# `kubectl exec` reads the pod first. training-operator lets its launchers do that.
_KUBECTL = ({"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},)


def role(
    job: MPIJob, workers: Iterable[int] | None = None, *, by_kubectl: bool = False
) -> Manifest:
    """The permission to exec into the workers of the job, by name."""
    return {
        "apiVersion": ROLES.api_version,
        "kind": ROLES.kind,
        "metadata": metadata(job, names.launcher_access(job), labels.object_labels(job)),
        "rules": [*(_KUBECTL if by_kubectl else ()), *rules(job, workers)],
    }


def rules(job: MPIJob, indexes: Iterable[int] | None = None) -> list[Manifest]:
    """The rules of the Role; none without workers, because a rule without names is about all."""
    workers = names.workers(job, indexes)
    rule = {
        "apiGroups": [""],
        "resources": ["pods/exec"],
        "resourceNames": workers,
        # A WebSocket begins as a GET. Since Kubernetes 1.35 exec needs create as well.
        "verbs": ["get", "create"],
    }
    return [rule] if workers else []
