"""The labels of a job's objects, and selectors for them.

Every value fits into a label: job names are below 55 characters, because validation wants worker
names to fit into 63; the others are roles and numbers.
"""

from collections.abc import Mapping
from enum import StrEnum

from .profiles import PROFILES, profile
from .types import MPIJob

APP = "app"
OPERATOR_NAME = "training.kubeflow.org/operator-name"
JOB_NAME = "training.kubeflow.org/job-name"
JOB_ROLE = "training.kubeflow.org/job-role"
REPLICA_INDEX = "training.kubeflow.org/replica-index"
REPLICA_TYPE = "training.kubeflow.org/replica-type"

OPERATOR = "mpi-operator"  # Kueue looks for this value
TRAINING_OPERATOR = "mpijob-controller"  # of pods that training-operator created


class Role(StrEnum):
    """The role of a pod."""

    LAUNCHER = "launcher"
    WORKER = "worker"


_ROLES = {each.launcher_role: Role.LAUNCHER for each in PROFILES.values()} | {
    Role.WORKER.value: Role.WORKER
}


def launcher_labels(job: MPIJob) -> dict[str, str]:
    """The labels of the launcher's pod."""
    index = {REPLICA_INDEX: "0"} if job.spec.run_launcher_as_worker else {}
    return _pod_labels(job, Role.LAUNCHER) | index


def worker_labels(job: MPIJob, index: int) -> dict[str, str]:
    """The labels of one worker pod. A launcher that runs ranks, too, has index 0."""
    first = 1 if job.spec.run_launcher_as_worker else 0
    return _pod_labels(job, Role.WORKER) | {REPLICA_INDEX: str(first + index)}


def object_labels(job: MPIJob) -> dict[str, str]:
    """The labels of objects other than pods."""
    return {APP: job.metadata.name} | pod_selector(job)


def pod_selector(job: MPIJob) -> dict[str, str]:
    """The labels that select all pods of a job."""
    return {OPERATOR_NAME: OPERATOR, JOB_NAME: job.metadata.name}


def role_selector(job: MPIJob, role: Role) -> dict[str, str]:
    """The labels that select the pods of one role."""
    return pod_selector(job) | {JOB_ROLE: _job_role(job, role)}


def role_of(labels: Mapping[str, str]) -> Role | None:
    """The role of a pod, from its labels. Launchers have several names for theirs.

    Workers that training-operator created have it as the type of the replica only.
    """
    return _ROLES.get(labels.get(JOB_ROLE) or labels.get(REPLICA_TYPE, ""))


def as_selector(labels: Mapping[str, str]) -> str:
    """Labels as a label selector, for queries and for `status.selector`."""
    return ",".join(f"{key}={value}" for key, value in labels.items())


def _pod_labels(job: MPIJob, role: Role) -> dict[str, str]:
    return role_selector(job, role) | {REPLICA_TYPE: role.value} | _older_labels(job, role)


def _job_role(job: MPIJob, role: Role) -> str:
    return profile(job).launcher_role if role is Role.LAUNCHER else role.value


def _older_labels(job: MPIJob, role: Role) -> dict[str, str]:
    """Labels of versions before v2beta1. MLRun, Katib and old scripts still select by them."""
    return {
        "group-name": "kubeflow.org",
        "mpi-job-name": job.metadata.name,
        "mpi-job-role": role.value,
        "mpi_job_name": job.metadata.name,
        "mpi_role_type": role.value,
    }
