"""The types of an MPIJob in `kubeflow.org/v1`, as the Training Operator 1.9 has them."""

from enum import StrEnum

from mpi_operator.api.types import (
    CleanPodPolicy,
    LauncherCreationPolicy,
    Metadata,
    MPIJobStatus,
    Natural32,
    Natural64,
    Part,
    PodTemplate,
    Replicas,
)

from .shared_fields import SharedRunPolicy, SharedSpec


class RestartPolicy(StrEnum):
    """When a terminated container is restarted."""

    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    NEVER = "Never"
    EXIT_CODE = "ExitCode"


class Manager(StrEnum):
    """The controllers that may run a job. The first two both mean this operator."""

    TRAINING_OPERATOR = "kubeflow.org/training-operator"
    MPI_OPERATOR = "kubeflow.org/mpi-operator"
    MULTI_KUEUE = "kueue.x-k8s.io/multikueue"


class RunPolicy(SharedRunPolicy, frozen=True):
    """Time limits, retries, suspension and cleanup of the job."""

    clean_pod_policy: CleanPodPolicy | None = None
    """Which pods, including the launcher, to delete after the job has finished. `Running` keeps
    terminated pods and their logs. Defaults to `None`."""

    ttl_seconds_after_finished: Natural32 | None = None
    """How long to keep the MPIJob after it has finished, in seconds. Defaults to no limit."""

    active_deadline_seconds: Natural64 | None = None
    """How long the launcher may run before the job fails, in seconds. Defaults to no limit."""

    backoff_limit: Natural32 | None = None
    """Number of launcher retries before the job fails. Has no effect if the launcher's
    `restartPolicy` is `Never`."""

    managed_by: Manager | None = None
    """Controller that runs the job: this operator, as `kubeflow.org/training-operator` (the
    default) or `kubeflow.org/mpi-operator`, or `kueue.x-k8s.io/multikueue`. Immutable."""


class ReplicaSpec(Part, frozen=True):
    """The pods of one role."""

    replicas: Replicas | None = None
    """Number of pods. Must be 1 for the launcher and at most 20,000 for workers. Defaults to 1."""

    restart_policy: RestartPolicy | None = None
    """When to restart a terminated container. `ExitCode` retries after exit codes from 128 to 255.
    Defaults to `Never`."""

    template: PodTemplate | None = None
    """Pod template. The arguments of a worker without a command are ignored."""


class ReplicaSpecs(Part, frozen=True, rename="pascal"):
    """The roles of a job. The launcher is required; unknown roles are ignored."""

    launcher: ReplicaSpec | None = None
    worker: ReplicaSpec | None = None


class MPIJobSpec(SharedSpec, frozen=True):
    """The desired state of a job."""

    mpi_replica_specs: ReplicaSpecs
    """Pods of the job by role: `Launcher` (required) and `Worker`."""

    slots_per_worker: Natural32 | None = None
    """Number of ranks that each worker can run. Defaults to 1."""

    clean_pod_policy: CleanPodPolicy | None = None
    """Deprecated: use `runPolicy.cleanPodPolicy`, which wins if both are given."""

    run_policy: RunPolicy | None = None
    """Time limits, retries, suspension and cleanup of the job."""

    run_launcher_as_worker: bool | None = None
    """Whether ranks run in the launcher, too. Defaults to whether the launcher has a GPU limit."""

    launcher_creation_policy: LauncherCreationPolicy | None = None
    """When to create the launcher: `AtStartup` (the default), together with the workers, or
    `WaitForWorkersReady`."""


class MPIJob(Part, frozen=True, kw_only=True):
    """A job: a launcher that runs mpirun, and workers that run the ranks."""

    metadata: Metadata | None = None

    spec: MPIJobSpec
    """Desired state of the job."""

    status: MPIJobStatus | None = None
    """Observed state of the job."""
