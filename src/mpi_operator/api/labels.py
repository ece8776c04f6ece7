"""How the parts of a job are marked, and how to find them.

The values are the name of the job, which validation keeps below 55 characters (a worker's name must
fit into 63), roles and numbers: they always fit into a label.
"""

from collections.abc import Mapping
from enum import StrEnum

from .types import MPIJob

APP = "app"
OPERATOR_NAME = "training.kubeflow.org/operator-name"
JOB_NAME = "training.kubeflow.org/job-name"
JOB_ROLE = "training.kubeflow.org/job-role"
REPLICA_INDEX = "training.kubeflow.org/replica-index"
REPLICA_TYPE = "training.kubeflow.org/replica-type"

OPERATOR = "mpi-operator"  # Kueue looks for this value


class Role(StrEnum):
    """What a pod does for its job."""

    LAUNCHER = "launcher"
    WORKER = "worker"


def launcher_labels(job: MPIJob) -> dict[str, str]:
    """The labels of the launcher's pod."""
    index = {REPLICA_INDEX: "0"} if job.spec.run_launcher_as_worker else {}
    return _pod_labels(job, Role.LAUNCHER) | index


def worker_labels(job: MPIJob, index: int) -> dict[str, str]:
    """The labels of one worker pod. A launcher that is a worker too takes the first number."""
    first = 1 if job.spec.run_launcher_as_worker else 0
    return _pod_labels(job, Role.WORKER) | {REPLICA_INDEX: str(first + index)}


def object_labels(job: MPIJob) -> dict[str, str]:
    """The labels of everything that is no pod."""
    return {APP: job.metadata.name} | pod_selector(job)


def pod_selector(job: MPIJob) -> dict[str, str]:
    """What all pods of a job have in common."""
    return {OPERATOR_NAME: OPERATOR, JOB_NAME: job.metadata.name}


def role_selector(job: MPIJob, role: Role) -> dict[str, str]:
    """What the pods of one role have in common."""
    return pod_selector(job) | {JOB_ROLE: role.value}


def as_selector(labels: Mapping[str, str]) -> str:
    """Labels as the API server wants them in a query and in `status.selector`."""
    return ",".join(f"{key}={value}" for key, value in labels.items())


def _pod_labels(job: MPIJob, role: Role) -> dict[str, str]:
    return role_selector(job, role) | {REPLICA_TYPE: role.value} | _older_labels(job, role)


def _older_labels(job: MPIJob, role: Role) -> dict[str, str]:
    """What versions before v2beta1 put on pods. MLRun, Katib and old scripts select by them."""
    return {
        "group-name": "kubeflow.org",
        "mpi-job-name": job.metadata.name,
        "mpi-job-role": role.value,
        "mpi_job_name": job.metadata.name,
        "mpi_role_type": role.value,
    }
