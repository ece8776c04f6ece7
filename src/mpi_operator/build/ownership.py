"""Whose an object is. It is deleted with its job, and nobody else's is ever touched."""

from collections.abc import Mapping

from mpi_operator.api import MPIJob
from mpi_operator.api.types import API_VERSION, GROUP, KIND, PLURAL, VERSION
from mpi_operator.kube.resources import Manifest, Resource

MPI_JOBS = Resource(GROUP, VERSION, PLURAL, KIND)  # what owns everything that is built


def owner_reference(job: MPIJob) -> Manifest:
    """What says that an object belongs to a job, which alone controls it."""
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
    """The metadata of an object of a job."""
    return {
        "name": name,
        "namespace": job.metadata.namespace,
        "labels": dict(labels),
        **({"annotations": dict(annotations)} if annotations else {}),
        "ownerReferences": [owner_reference(job)],
    }
