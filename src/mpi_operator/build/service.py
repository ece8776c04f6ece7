"""The Service through which the pods of a job find each other by name."""

from collections.abc import Mapping
from typing import Any

from mpi_operator.api import MPIJob, labels, names
from mpi_operator.kube.resources import SERVICES, Manifest

from .ownership import metadata


def service(job: MPIJob) -> Manifest:
    """A headless Service: no address of its own, only a DNS name per pod."""
    return {
        "apiVersion": SERVICES.api_version,
        "kind": SERVICES.kind,
        "metadata": metadata(job, names.service(job), labels.object_labels(job)),
        "spec": {
            "clusterIP": "None",
            "selector": labels.pod_selector(job),
            # A name that comes when its pod is ready comes late: name servers remember for seconds
            # that there was none. Launchers wait for the sshd behind it anyway, and a worker that
            # is not ready for a moment is still the one its ranks talk to.
            "publishNotReadyAddresses": True,
        },
    }


def service_differs(stored_spec: Mapping[str, Any], job: MPIJob) -> bool:
    """Whether a stored Service has to be corrected. What others added to it is left alone."""
    is_public = stored_spec.get("publishNotReadyAddresses")  # left out if false
    return stored_spec.get("selector") != labels.pod_selector(job) or not is_public
