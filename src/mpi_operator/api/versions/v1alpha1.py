"""The types of an MPIJob in `kubeflow.org/v1alpha1`, as MPI Operator 0.2 has them."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from mpi_operator.api import types
from mpi_operator.api.types import (
    CleanPodPolicy,
    LauncherCreationPolicy,
    Manager,
    Metadata,
    Natural32,
    Natural64,
    Part,
    PodTemplate,
    Replicas,
)

from .shared_fields import SharedRunPolicy, SharedSpec

Positive32 = Annotated[int, Meta(ge=1, extra_json_schema={"format": "int32"})]
Units = Annotated[
    int,
    Meta(
        ge=1,
        extra_json_schema={
            "format": "int32",
            "x-kubernetes-validations": [
                {
                    "rule": "self in [1, 2, 4] || self % 8 == 0",
                    "message": "must be 1, 2, 4 or a multiple of 8",
                }
            ],
        },
    ),
]


class ProcessingResourceType(StrEnum):
    """The resource that processing units are counted in."""

    NVIDIA_GPU = "nvidia.com/gpu"
    CPU = "cpu"


class LauncherState(StrEnum):
    """The state of the launcher."""

    ACTIVE = "Active"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class RunPolicy(SharedRunPolicy, frozen=True):
    """Cleanup and suspension of the job, as v2beta1 has them."""

    clean_pod_policy: CleanPodPolicy | None = None
    """Which worker pods to delete after the job has finished. `Running` keeps terminated pods and
    their logs. Defaults to `All`."""

    ttl_seconds_after_finished: Natural32 | None = None
    """How long to keep the launcher after the job has finished, in seconds. Defaults to no
    limit."""

    active_deadline_seconds: Natural64 | None = None
    """Use `spec.activeDeadlineSeconds`, which wins if both are given."""

    backoff_limit: Natural32 | None = None
    """Use `spec.backoffLimit`, which wins if both are given."""

    managed_by: Manager | None = None
    """Controller that runs the job: `kubeflow.org/mpi-operator` (the default) or
    `kueue.x-k8s.io/multikueue`. Immutable."""


class MPIJobSpec(SharedSpec, frozen=True):
    """The desired state of a job. It has exactly one of gpus, processingUnits and replicas."""

    gpus: Units | None = None
    """Total number of GPUs, which determines the number of workers: 1, 2, 4 or a multiple of 8.
    Older name of `processingUnits`."""

    gpus_per_node: Positive32 | None = None
    """Number of GPUs of a worker. Defaults to the operator's flag `--gpus-per-node`."""

    processing_units: Units | None = None
    """Total number of processing units, which determines the number of workers: 1, 2, 4 or a
    multiple of 8."""

    processing_units_per_node: Positive32 | None = None
    """Number of processing units of a worker. Defaults to the operator's flag
    `--processing-units-per-node`."""

    processing_resource_type: ProcessingResourceType | None = None
    """Resource that a processing unit is. Defaults to the operator's flag
    `--processing-resource-type`."""

    replicas: Replicas | None = None
    """Number of workers, at least 1 unless `runLauncherAsWorker` is true. Their resources are in
    the template."""

    slots_per_worker: Natural32 | None = None
    """Number of ranks that each worker can run. Defaults to the processing units of a worker."""

    launcher_on_master: bool | None = None
    """Whether the launcher runs on a control plane node. Defaults to `false`."""

    backoff_limit: Natural32 | None = None
    """Number of launcher retries before the job fails. Defaults to 6."""

    active_deadline_seconds: Natural64 | None = None
    """How long the launcher may run before the job fails, in seconds. Defaults to no limit."""

    template: PodTemplate | None = None
    """Pod template for the launcher and the workers. The launcher's first container gets no
    resources, the workers' first container gets no command."""

    run_policy: RunPolicy | None = None
    """Cleanup and suspension of the job, as v2beta1 has them."""

    run_launcher_as_worker: bool | None = None
    """Whether ranks run in the launcher, too. Defaults to `false`."""

    launcher_creation_policy: LauncherCreationPolicy | None = None
    """When to create the launcher: `AtStartup`, together with the workers, or
    `WaitForWorkersReady` (the default)."""


class MPIJobStatus(types.MPIJobStatus, frozen=True):
    """The observed state of a job: that of v2beta1, and two fields of this version."""

    launcher_status: LauncherState | None = None
    """State of the launcher: `Active`, `Succeeded` or `Failed`."""

    worker_replicas: Natural32 | None = None
    """Number of running workers."""


class MPIJob(Part, frozen=True, kw_only=True):
    """A job: a launcher that runs mpirun, and workers that run the ranks."""

    metadata: Metadata | None = None

    spec: MPIJobSpec
    """Desired state of the job."""

    status: MPIJobStatus | None = None
    """Observed state of the job."""
