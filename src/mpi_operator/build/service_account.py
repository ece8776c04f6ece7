"""The ServiceAccount of a launcher that starts processes in its workers by exec."""

from mpi_operator.api import MPIJob, labels, names
from mpi_operator.kube.resources import SERVICE_ACCOUNTS, Manifest

from .ownership import metadata


def service_account(job: MPIJob) -> Manifest:
    """The account. It may do what the Role of the job says, and nothing else."""
    return {
        "apiVersion": SERVICE_ACCOUNTS.api_version,
        "kind": SERVICE_ACCOUNTS.kind,
        "metadata": metadata(job, names.launcher_access(job), labels.object_labels(job)),
    }
