"""The headless Service that gives the pods of a job their DNS names."""

from collections.abc import Mapping
from typing import Any

from mpi_operator.api import MPIJob, labels, names
from mpi_operator.kube.resources import SERVICES, Manifest

from .ownership import metadata


def service(job: MPIJob) -> Manifest:
    """The Service of a job: without a cluster IP, with a DNS name for each pod."""
    return {
        "apiVersion": SERVICES.api_version,
        "kind": SERVICES.kind,
        "metadata": metadata(job, names.service(job), labels.object_labels(job)),
        "spec": {
            "clusterIP": "None",
            "selector": labels.pod_selector(job),
            # DNS servers cache for seconds that a name does not exist, so names must exist before
            # pods are ready. Launchers wait for the sshd anyway, and the ranks of a worker that is
            # unready for a moment still need its name.
            "publishNotReadyAddresses": True,
        },
    }


def service_differs(stored_spec: Mapping[str, Any], job: MPIJob) -> bool:
    """Whether our fields of a stored Service differ. Fields that others added do not count."""
    is_public = stored_spec.get("publishNotReadyAddresses")  # left out if false
    return stored_spec.get("selector") != labels.pod_selector(job) or not is_public
