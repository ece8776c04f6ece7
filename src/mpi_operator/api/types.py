"""An MPIJob of `kubeflow.org/v2beta1`, with every field that it has.

These types are the one source of field names, types, limits, defaults and documentation: the custom
resource definition, the checks and the reference are made from them. What is not given has its
default as soon as it is decoded, so nobody asks twice. Pod templates stay plain dicts, because
typed models lose the fields that they do not know.
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
# Of more hosts than that not even the shortest names fit into a ConfigMap. Without a limit, one job
# with a typing error in it would make the operator count to two thousand million.
Replicas = Annotated[int, Meta(ge=0, le=20_000, extra_json_schema={"format": "int32"})]
Time = Annotated[datetime, Meta(tz=True)]
# Kinds of Kubernetes' own, whose schemas are Kubernetes' own too.
Quantity = Annotated[int | str, Meta(extra={"schema": "Quantity"})]
PodTemplate = Annotated[dict[str, Any], Meta(extra={"schema": "PodTemplate"})]
LabelSelector = Annotated[dict[str, Any], Meta(extra={"schema": "LabelSelector"})]


class ReplicaType(StrEnum):
    """The two roles, as `mpiReplicaSpecs` and `replicaStatuses` spell them."""

    LAUNCHER = "Launcher"
    WORKER = "Worker"


class Implementation(StrEnum):
    """Which MPI the images contain."""

    OPEN_MPI = "OpenMPI"
    INTEL = "Intel"
    MPICH = "MPICH"


class RestartPolicy(StrEnum):
    """What happens to a container that ended."""

    NEVER = "Never"
    ON_FAILURE = "OnFailure"


class CleanPodPolicy(StrEnum):
    """Which worker pods are deleted when the job has finished."""

    ALL = "All"
    NONE = "None"
    RUNNING = "Running"


class LauncherCreationPolicy(StrEnum):
    """When the launcher is created."""

    AT_STARTUP = "AtStartup"
    WAIT_FOR_WORKERS_READY = "WaitForWorkersReady"


class Manager(StrEnum):
    """Who may be told to run a job."""

    MPI_OPERATOR = "kubeflow.org/mpi-operator"
    MULTI_KUEUE = "kueue.x-k8s.io/multikueue"


class ConditionType(StrEnum):
    """What a condition is about. Readers take one they do not know for an undefined state."""

    CREATED = "Created"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    SUSPENDED = "Suspended"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class ConditionStatus(StrEnum):
    """Whether it is so."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Part(msgspec.Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """A part of a job. What it does not know is ignored when decoding."""


class SchedulingPolicy(Part, frozen=True):
    """How a gang scheduler treats the pods of the job."""

    min_available: Int32 | None = None
    """How many pods must be schedulable before any is started. By default all of them."""

    queue: str = ""
    """The queue of the pod group. Volcano only."""

    min_resources: dict[str, Quantity] = {}
    """What must be free before any pod is started. By default the sum of what the pods ask for."""

    priority_class: str = ""
    """The priority class of the pod group. By default the launcher's, else the workers'.
    Volcano only."""

    schedule_timeout_seconds: Int32 | None = None
    """For how long the scheduler waits for the whole group. scheduler-plugins only."""


class RunPolicy(Part, frozen=True):
    """How long the job runs, how often it is tried, and what is left of it."""

    clean_pod_policy: CleanPodPolicy = CleanPodPolicy.NONE
    """Which worker pods are deleted when the job has finished. `Running` keeps those that have
    ended, and with them their logs. The default is `None`."""

    ttl_seconds_after_finished: Natural32 | None = None
    """How long the launcher is kept after the job has finished. By default for ever."""

    active_deadline_seconds: Natural64 | None = None
    """How long the launcher may run before the job has failed."""

    backoff_limit: Natural32 | None = None
    """How often the launcher is tried again before the job has failed. The default is 6."""

    scheduling_policy: SchedulingPolicy | None = None
    """How a gang scheduler treats the pods. Without gang scheduling it has no effect."""

    suspend: bool = False
    """Whether the job has to wait. To suspend a running job deletes its pods; when it is resumed
    it starts anew."""

    managed_by: Manager | None = None
    """Who runs the job: `kubeflow.org/mpi-operator`, which is the default, or
    `kueue.x-k8s.io/multikueue`, with which this operator leaves it alone. Cannot be changed."""


class ReplicaSpec(Part, frozen=True):
    """The pods of one role."""

    replicas: Replicas = 1
    """How many pods. The launcher is always 1. Workers may be 0 only with `runLauncherAsWorker`,
    and are 20,000 at most."""

    restart_policy: RestartPolicy | None = None
    """What happens to a container that ended. The default is `OnFailure` for the launcher and
    `Never` for workers. It overrides the one in the template."""

    template: PodTemplate = {}
    """The pod. The first container gets what MPI needs; further ones are left as they are."""


class LauncherSpec(ReplicaSpec, frozen=True):
    """The pod that runs mpirun."""

    restart_policy: RestartPolicy = RestartPolicy.ON_FAILURE


class WorkerSpec(ReplicaSpec, frozen=True):
    """The pods in which the ranks run."""

    restart_policy: RestartPolicy = RestartPolicy.NEVER


class ReplicaSpecs(Part, frozen=True, rename="pascal"):
    """The roles of a job. A job needs a launcher; who else is named here is ignored."""

    launcher: LauncherSpec = LauncherSpec()
    worker: WorkerSpec | None = None


class MPIJobSpec(Part, frozen=True):
    """What is wanted."""

    mpi_replica_specs: ReplicaSpecs = ReplicaSpecs()
    """The pods of the job by role: `Launcher`, which is required, and `Worker`."""

    slots_per_worker: Natural32 = 1
    """How many ranks each worker has room for."""

    run_launcher_as_worker: bool = False
    """Whether ranks run in the launcher too."""

    run_policy: RunPolicy = RunPolicy()
    """How long the job runs, how often it is tried, and what is left of it."""

    ssh_auth_mount_path: str = "/root/.ssh"
    """Where the SSH keys of the job are mounted: the `.ssh` directory of the user who runs it."""

    launcher_creation_policy: LauncherCreationPolicy = LauncherCreationPolicy.AT_STARTUP
    """When the launcher is created: `AtStartup`, together with the workers, or
    `WaitForWorkersReady`."""

    mpi_implementation: Implementation = Implementation.OPEN_MPI
    """Which MPI the images contain. It decides what the hostfile looks like."""

    @property
    def launcher(self) -> LauncherSpec:
        return self.mpi_replica_specs.launcher

    @property
    def worker(self) -> WorkerSpec | None:
        return self.mpi_replica_specs.worker

    @property
    def worker_count(self) -> int:
        """How many worker pods there should be."""
        return self.worker.replicas if self.worker else 0

    @property
    def launcher_waits(self) -> bool:
        """Whether the launcher comes only after the workers."""
        return self.launcher_creation_policy is LauncherCreationPolicy.WAIT_FOR_WORKERS_READY


class Condition(Part, frozen=True):
    """One of the facts in a status: whether it is so, since when and why."""

    type: str
    """What it is about: `Created`, `Running`, `Suspended`, `Succeeded` or `Failed`."""

    status: ConditionStatus
    """Whether it is so."""

    reason: str = ""
    """Why, in one word for programs."""

    message: str = ""
    """Why, in a sentence for people."""

    last_update_time: Time | None = None
    """When anything about this condition changed."""

    last_transition_time: Time | None = None
    """Since when the status is as it is."""

    @property
    def is_true(self) -> bool:
        return self.status is ConditionStatus.TRUE


class ReplicaStatus(Part, frozen=True, omit_defaults=False):
    """How the pods of one role are doing. Zeros are spelled out, for they are what people see."""

    active: Natural32 = 0
    """How many pods run."""

    succeeded: Natural32 = 0
    """How many pods succeeded."""

    failed: Natural32 = 0
    """How many pods failed."""

    label_selector: LabelSelector | UnsetType = UNSET
    """Deprecated and never set."""

    selector: str | UnsetType = UNSET
    """Deprecated and never set: the selector of the workers is `status.selector`."""


class ReplicaStatuses(Part, frozen=True, rename="pascal"):
    """How each role is doing. One that has no pods yet is not there."""

    launcher: ReplicaStatus | None = None
    worker: ReplicaStatus | None = None


class MPIJobStatus(Part, frozen=True):
    """What is, as the operator saw it last."""

    conditions: Annotated[
        tuple[Condition, ...],
        Meta(
            extra_json_schema={
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
            }
        ),
    ] = ()
    """What is known about the job. The last one describes its state."""

    replica_statuses: ReplicaStatuses = ReplicaStatuses()
    """How many pods of each role run, succeeded and failed."""

    start_time: Time | None = None
    """When the operator started on the job, or resumed it."""

    completion_time: Time | None = None
    """When the job finished."""

    last_reconcile_time: Time | None = None
    """Kept for programs that know it; never set."""

    observed_generation: Int64 | None = None
    """The generation of the spec that this status is about."""

    selector: str = ""
    """Which pods are workers, as a label selector: what autoscalers measure."""


class Metadata(Part, frozen=True):
    """What every object says about itself, less managed fields."""

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
    """A job: a launcher that runs mpirun, and workers that the ranks run in."""

    metadata: Metadata = field(default_factory=Metadata)

    spec: MPIJobSpec = field(default_factory=MPIJobSpec)
    """What is wanted."""

    status: MPIJobStatus = field(default_factory=MPIJobStatus)
    """What is, as the operator saw it last."""


def manifest(job: MPIJob) -> Manifest:
    """The job as Kubernetes writes it, to do with as one likes: nothing of it is shared.

    Fields that have their default are left out.
    """
    return {"apiVersion": API_VERSION, "kind": KIND, **msgspec.json.decode(_encode(job))}


def status_manifest(status: MPIJobStatus) -> Manifest:
    """A status as Kubernetes writes it."""
    decoded: Manifest = msgspec.json.decode(_encode(status))
    return decoded
