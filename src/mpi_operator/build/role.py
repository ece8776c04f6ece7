"""The Role of a launcher that starts processes in its workers by exec."""

from mpi_operator.api import MPIJob, labels, names
from mpi_operator.kube.resources import ROLES, Manifest

from .ownership import metadata


def role(job: MPIJob) -> Manifest:
    """The permission to exec into the workers of the job, by name."""
    return {
        "apiVersion": ROLES.api_version,
        "kind": ROLES.kind,
        "metadata": metadata(job, names.launcher_access(job), labels.object_labels(job)),
        "rules": rules(job),
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
