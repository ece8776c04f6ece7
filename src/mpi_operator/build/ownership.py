"""Ownership by the job: Kubernetes deletes an object with its owner.

The operator never changes objects with another owner.
"""

from collections.abc import Mapping

from mpi_operator.api import MPIJob
from mpi_operator.api.types import API_VERSION, GROUP, KIND, PLURAL, VERSION
from mpi_operator.kube.resources import Manifest, Resource

MPI_JOBS = Resource(GROUP, VERSION, PLURAL, KIND)


def owner_reference(job: MPIJob) -> Manifest:
    """The owner reference to a job, as the controller of the object."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": job.metadata.name,
        "uid": job.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def metadata(
    job: MPIJob,
    name: str,
    labels: Mapping[str, str],
    annotations: Mapping[str, str] = {},
) -> Manifest:
    """The metadata of an object that a job owns."""
    return {
        "name": name,
        "namespace": job.metadata.namespace,
        "labels": dict(labels),
        **({"annotations": dict(annotations)} if annotations else {}),
        "ownerReferences": [owner_reference(job)],
    }
