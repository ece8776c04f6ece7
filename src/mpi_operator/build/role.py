"""The Role of a launcher that starts processes in its workers by exec."""

from mpi_operator.api import MPIJob, labels, names
from mpi_operator.kube.resources import ROLES, Manifest

from .ownership import metadata

# `kubectl exec` reads the pod first. training-operator lets its launchers do that.
_KUBECTL = ({"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},)


def role(job: MPIJob, *, by_kubectl: bool = False) -> Manifest:
    """The permission to exec into the workers of the job, by name."""
    return {
        "apiVersion": ROLES.api_version,
        "kind": ROLES.kind,
        "metadata": metadata(job, names.launcher_access(job), labels.object_labels(job)),
        "rules": [*(_KUBECTL if by_kubectl else ()), *rules(job)],
    }


def rules(job: MPIJob) -> list[Manifest]:
    """The rules of the Role; none without workers, because a rule without names is about all."""
    workers = names.workers(job)
    rule = {
        "apiGroups": [""],
        "resources": ["pods/exec"],
        "resourceNames": workers,
        # A WebSocket begins as a GET. Since Kubernetes 1.35 exec needs create as well.
        "verbs": ["get", "create"],
    }
    return [rule] if workers else []
