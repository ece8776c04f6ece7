"""The types of an MPIJob in `kubeflow.org/v1alpha2`, as MPI Operator 0.3 has them."""

from enum import StrEnum

from mpi_operator.api.types import (
    CleanPodPolicy,
    LauncherCreationPolicy,
    Manager,
    Metadata,
    MPIJobStatus,
    Natural32,
    Natural64,
    Part,
    PodTemplate,
    Replicas,
)

from .shared_fields import SharedRunPolicy, SharedSpec
from .v1 import RestartPolicy


class Distribution(StrEnum):
    """The MPI implementation in the images."""

    OPEN_MPI = "OpenMPI"
    INTEL_MPI = "IntelMPI"
    MPICH = "MPICH"


class RunPolicy(SharedRunPolicy, frozen=True):
    """Time limits, retries and suspension of the job."""

    clean_pod_policy: CleanPodPolicy | None = None
    """Which worker pods to delete after the job has finished. `spec.cleanPodPolicy` wins if both
    are given."""

    ttl_seconds_after_finished: Natural32 | None = None
    """How long to keep the launcher after the job has finished, in seconds. Defaults to no
    limit."""

    active_deadline_seconds: Natural64 | None = None
    """How long the launcher may run before the job fails, in seconds. Wins over
    `spec.activeDeadlineSeconds`."""

    backoff_limit: Natural32 | None = None
    """Number of launcher retries before the job fails. Wins over `spec.backoffLimit`."""

    managed_by: Manager | None = None
    """Controller that runs the job: `kubeflow.org/mpi-operator` (the default) or
    `kueue.x-k8s.io/multikueue`. Immutable."""


class ReplicaSpec(Part, frozen=True):
    """The pods of one role."""

    replicas: Replicas | None = None
    """Number of pods. Must be 1 for the launcher and at most 20,000 for workers. Workers may be 0
    only with `runLauncherAsWorker`. Defaults to 1."""

    restart_policy: RestartPolicy | None = None
    """When to restart a terminated container of the launcher: `Never`, or `OnFailure` (the
    default), which the other values stand for, too. Ignored for workers, which are restarted."""

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

    backoff_limit: Natural32 | None = None
    """Number of launcher retries before the job fails. Defaults to 6."""

    active_deadline_seconds: Natural64 | None = None
    """How long the launcher may run before the job fails, in seconds. Defaults to no limit."""

    clean_pod_policy: CleanPodPolicy | None = None
    """Which worker pods to delete after the job has finished. `Running` keeps terminated pods and
    their logs. Defaults to `None`."""

    mpi_distribution: Distribution | None = None
    """MPI implementation in the images. Wins over `mpiImplementation`. Defaults to `OpenMPI`."""

    run_policy: RunPolicy | None = None
    """Time limits, retries and suspension of the job."""

    run_launcher_as_worker: bool | None = None
    """Whether ranks run in the launcher, too. Defaults to `false`."""

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
