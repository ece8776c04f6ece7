"""The types of an MPIJob (`kubeflow.org/v2beta1`).

They are the only source of field names, types, limits, defaults and documentation: the CRD, the
validation and the reference are generated from them. Decoding fills in every default. Pod templates
stay plain dicts, because typed models lose the fields that they do not know.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

GROUP = "kubeflow.org"
VERSION = "v2beta1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "MPIJob"
PLURAL = "mpijobs"

Manifest: TypeAlias = dict[str, Any]

_encode = msgspec.json.Encoder().encode

Int32 = Annotated[int, Meta(extra_json_schema={"format": "int32"})]
Natural32 = Annotated[int, Meta(ge=0, extra_json_schema={"format": "int32"})]
Natural64 = Annotated[int, Meta(ge=0, extra_json_schema={"format": "int64"})]
Int64 = Annotated[int, Meta(extra_json_schema={"format": "int64"})]
# A hostfile with more hosts would not fit into a ConfigMap. Without a limit, one typo could make
# the operator count to two billion.
Replicas = Annotated[int, Meta(ge=0, le=20_000, extra_json_schema={"format": "int32"})]
Time = Annotated[datetime, Meta(tz=True)]
# Types of Kubernetes, with the schemas of Kubernetes.
Quantity = Annotated[int | str, Meta(extra={"schema": "Quantity"})]
PodTemplate = Annotated[dict[str, Any], Meta(extra={"schema": "PodTemplate"})]
LabelSelector = Annotated[dict[str, Any], Meta(extra={"schema": "LabelSelector"})]


class ReplicaType(StrEnum):
    """The roles, as spelled in `mpiReplicaSpecs` and `replicaStatuses`."""

    LAUNCHER = "Launcher"
    WORKER = "Worker"


class Implementation(StrEnum):
    """The MPI implementation in the images."""

    OPEN_MPI = "OpenMPI"
    INTEL = "Intel"
    MPICH = "MPICH"


class RestartPolicy(StrEnum):
    """When a terminated container is restarted."""

    NEVER = "Never"
    ON_FAILURE = "OnFailure"


class CleanPodPolicy(StrEnum):
    """Which worker pods are deleted after the job has finished."""

    ALL = "All"
    NONE = "None"
    RUNNING = "Running"


class LauncherCreationPolicy(StrEnum):
    """When the launcher is created."""

    AT_STARTUP = "AtStartup"
    WAIT_FOR_WORKERS_READY = "WaitForWorkersReady"


class Manager(StrEnum):
    """The controllers that may run a job."""

    MPI_OPERATOR = "kubeflow.org/mpi-operator"
    MULTI_KUEUE = "kueue.x-k8s.io/multikueue"


class ConditionType(StrEnum):
    """The types of conditions. Clients treat a type they do not know as an undefined state."""

    CREATED = "Created"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    SUSPENDED = "Suspended"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class ConditionStatus(StrEnum):
    """The status of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Part(msgspec.Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """The base of all types. Decoding ignores unknown fields."""


class SchedulingPolicy(Part, frozen=True):
    """How a gang scheduler schedules the pods of the job."""

    min_available: Int32 | None = None
    """Minimum number of pods that must be schedulable before any pod starts. Defaults to all
    pods."""

    queue: str = ""
    """Queue of the PodGroup. Volcano only."""

    min_resources: dict[str, Quantity] = {}
    """Resources that must be free before any pod starts. Defaults to the sum of the pods'
    requests."""

    priority_class: str = ""
    """Priority class of the PodGroup. Defaults to the launcher's, then the workers'. Volcano
    only."""

    schedule_timeout_seconds: Int32 | None = None
    """How long the scheduler waits for the whole group, in seconds. scheduler-plugins only."""


class RunPolicy(Part, frozen=True):
    """Time limits, retries, suspension and cleanup of the job."""

    clean_pod_policy: CleanPodPolicy = CleanPodPolicy.NONE
    """Which worker pods to delete after the job has finished. `Running` keeps terminated pods and
    their logs. Defaults to `None`."""

    ttl_seconds_after_finished: Natural32 | None = None
    """How long to keep the launcher after the job has finished, in seconds. Defaults to no
    limit."""

    active_deadline_seconds: Natural64 | None = None
    """How long the launcher may run before the job fails, in seconds. Defaults to no limit."""

    backoff_limit: Natural32 | None = None
    """Number of launcher retries before the job fails. Defaults to 6."""

    scheduling_policy: SchedulingPolicy | None = None
    """How a gang scheduler schedules the pods. Has no effect without gang scheduling."""

    suspend: bool = False
    """Whether the job is suspended. Suspending a running job deletes its pods; resuming it starts
    it from the beginning."""

    managed_by: Manager | None = None
    """Controller that runs the job: `kubeflow.org/mpi-operator` (the default) or
    `kueue.x-k8s.io/multikueue`. This operator ignores jobs with another controller. Immutable."""


class ReplicaSpec(Part, frozen=True):
    """The pods of one role."""

    replicas: Replicas = 1
    """Number of pods. Must be 1 for the launcher and at most 20,000 for workers. Workers may be 0
    only with `runLauncherAsWorker`."""

    restart_policy: RestartPolicy | None = None
    """When to restart a terminated container. Defaults to `OnFailure` for the launcher and `Never`
    for workers. Overrides the restart policy in the template."""

    template: PodTemplate = {}
    """Pod template. The operator adds what MPI needs to the main container, which is the first one
    unless the annotation `mpi-operator.kubeflow.org/main-container` names another, and leaves the
    others unchanged."""


class LauncherSpec(ReplicaSpec, frozen=True):
    """The pod that runs mpirun."""

    restart_policy: RestartPolicy = RestartPolicy.ON_FAILURE


class WorkerSpec(ReplicaSpec, frozen=True):
    """The pods that run the ranks."""

    restart_policy: RestartPolicy = RestartPolicy.NEVER


class ReplicaSpecs(Part, frozen=True, rename="pascal"):
    """The roles of a job. The launcher is required; unknown roles are ignored."""

    launcher: LauncherSpec = LauncherSpec()
    worker: WorkerSpec | None = None


class MPIJobSpec(Part, frozen=True):
    """The desired state of a job."""

    mpi_replica_specs: ReplicaSpecs = ReplicaSpecs()
    """Pods of the job by role: `Launcher` (required) and `Worker`."""

    slots_per_worker: Natural32 = 1
    """Number of ranks that each worker can run."""

    run_launcher_as_worker: bool = False
    """Whether ranks run in the launcher, too."""

    run_policy: RunPolicy = RunPolicy()
    """Time limits, retries, suspension and cleanup of the job."""

    ssh_auth_mount_path: str = "/root/.ssh"
    """Where the SSH keys are mounted: the `.ssh` directory of the user that the containers run
    as."""

    launcher_creation_policy: LauncherCreationPolicy = LauncherCreationPolicy.AT_STARTUP
    """When to create the launcher: `AtStartup`, together with the workers, or
    `WaitForWorkersReady`."""

    mpi_implementation: Implementation = Implementation.OPEN_MPI
    """MPI implementation in the images. It determines the format of the hostfile."""

    @property
    def launcher(self) -> LauncherSpec:
        return self.mpi_replica_specs.launcher

    @property
    def worker(self) -> WorkerSpec | None:
        return self.mpi_replica_specs.worker

    @property
    def worker_count(self) -> int:
        """The number of worker pods that the spec asks for."""
        return self.worker.replicas if self.worker else 0

    @property
    def launcher_waits(self) -> bool:
        """Whether the launcher is created only after all workers are ready."""
        return self.launcher_creation_policy is LauncherCreationPolicy.WAIT_FOR_WORKERS_READY


class Condition(Part, frozen=True):
    """One condition of a job."""

    type: str
    """Type of the condition: `Created`, `Running`, `Restarting`, `Suspended`, `Succeeded` or
    `Failed`."""

    status: ConditionStatus
    """Status of the condition: `True`, `False` or `Unknown`."""

    reason: str = ""
    """Machine-readable reason for the status, in one word."""

    message: str = ""
    """Human-readable explanation of the status."""

    last_update_time: Time | None = None
    """Last time that the condition was updated."""

    last_transition_time: Time | None = None
    """Last time that the status changed."""

    @property
    def is_true(self) -> bool:
        return self.status is ConditionStatus.TRUE


class ReplicaStatus(Part, frozen=True, omit_defaults=False):
    """The number of pods of one role by state. Zeros are written, because people read them."""

    active: Natural32 = 0
    """Number of running pods."""

    succeeded: Natural32 = 0
    """Number of pods that succeeded."""

    failed: Natural32 = 0
    """Number of pods that failed."""

    label_selector: LabelSelector | UnsetType = UNSET
    """Deprecated, never set."""

    selector: str | UnsetType = UNSET
    """Deprecated, never set. The selector of the workers is in `status.selector`."""


class ReplicaStatuses(Part, frozen=True, rename="pascal"):
    """The status of each role. A role without pods has none."""

    launcher: ReplicaStatus | None = None
    worker: ReplicaStatus | None = None


class MPIJobStatus(Part, frozen=True):
    """The observed state of a job."""

    conditions: Annotated[
        tuple[Condition, ...],
        Meta(
            extra_json_schema={
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
            }
        ),
    ] = ()
    """Conditions of the job. The last one describes its current state."""

    replica_statuses: ReplicaStatuses = ReplicaStatuses()
    """Number of running, succeeded and failed pods of each role."""

    start_time: Time | None = None
    """When the operator started or last resumed the job."""

    completion_time: Time | None = None
    """When the job finished."""

    last_reconcile_time: Time | None = None
    """Never set. Kept for clients that know it."""

    observed_generation: Int64 | None = None
    """Generation of the spec that this status describes."""

    selector: str = ""
    """Label selector of the worker pods, for autoscalers."""


class Metadata(Part, frozen=True):
    """The metadata of an object, without managed fields."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[Manifest, ...] = ()
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None


class MPIJob(Part, frozen=True):
    """A job: a launcher that runs mpirun, and workers that run the ranks."""

    metadata: Metadata = field(default_factory=Metadata)

    spec: MPIJobSpec = field(default_factory=MPIJobSpec)
    """Desired state of the job."""

    status: MPIJobStatus = field(default_factory=MPIJobStatus)
    """Observed state of the job."""


def manifest(job: MPIJob) -> Manifest:
    """The job as a manifest that the caller may change. Fields with their default are left out."""
    return {"apiVersion": API_VERSION, "kind": KIND, **msgspec.json.decode(_encode(job))}


def status_manifest(status: MPIJobStatus) -> Manifest:
    """The status as a manifest."""
    decoded: Manifest = msgspec.json.decode(_encode(status))
    return decoded
