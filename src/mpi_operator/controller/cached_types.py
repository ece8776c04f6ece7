"""What the caches keep of each kind of object: only what decisions need.

A job is kept as its bytes. It is small that way, and an invalid job is read like any other: its
status reports what is wrong with it.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from msgspec.structs import force_setattr

from mpi_operator.api import annotations, types
from mpi_operator.build import scripts
from mpi_operator.build.ownership import MPI_JOBS
from mpi_operator.kube import objects
from mpi_operator.kube.json_depth import decoded
from mpi_operator.kube.objects import Compact, Object
from mpi_operator.kube.resources import Manifest, Resource

T = TypeVar("T")

PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False
)

__all__ = [
    "MPI_JOBS",
    "PRIORITY_CLASSES",
    "LauncherJob",
    "Pod",
    "PriorityClass",
    "StoredConfigMap",
    "StoredJob",
    "StoredPodGroup",
    "StoredService",
    "is_controlled_by",
    "moment",
    "stored_note",
]

_OF_PODS = (annotations.HOSTS_ANNOUNCED, annotations.POD_DELETION_COST)
_NONE: dict[str, str] = {}
_NOTHING = msgspec.Raw(b"null")
_decode = msgspec.json.Decoder().decode
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Metadata(objects.Metadata, frozen=True):
    """Metadata with annotations."""

    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class PodMetadata(objects.Metadata, frozen=True):
    """The metadata of a pod with the annotations that are about scaling."""

    annotations: dict[str, str] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        # Most pods have none of these, and share one empty dict.
        kept = {name: self.annotations[name] for name in _OF_PODS if name in self.annotations}
        force_setattr(self, "annotations", kept or _NONE)


class Pod(objects.Pod, frozen=True):
    """A pod of a job."""

    metadata: PodMetadata = PodMetadata()


class StoredJob(Object, frozen=True):
    """A job as the server has it, not decoded."""

    metadata: Metadata = Metadata()
    spec: msgspec.Raw = _NOTHING
    status: msgspec.Raw = _NOTHING

    def __post_init__(self) -> None:
        # A view would keep the whole line of the watch alive, managed fields and all.
        force_setattr(self, "spec", self.spec.copy())
        force_setattr(self, "status", self.status.copy())
        # kubectl's copy of the whole job is not needed.
        self.metadata.annotations.pop(_LAST_APPLIED, None)

    def manifest(self) -> Manifest:
        """The job as far as we keep it, decoded."""
        return {
            "apiVersion": types.API_VERSION,
            "kind": types.KIND,
            "metadata": _known(self.metadata),
            "spec": decoded(_decode, self.spec),
            "status": decoded(_decode, self.status),
        }


def _known(metadata: Metadata) -> Manifest:
    builtins = msgspec.to_builtins(metadata, str_keys=True)
    # Cached arrays are tuples; in JSON, which is what decoding checks, they are lists.
    lists = {name: list(value) for name, value in builtins.items() if isinstance(value, tuple)}
    return {name: value for name, value in (builtins | lists).items() if value}


class LauncherSpec(Compact, frozen=True):
    """What was asked of the Job controller."""

    suspend: bool = False


class JobCondition(objects.Condition, frozen=True):
    """A condition of a Job, with its time."""

    last_transition_time: str = ""


class LauncherStatus(Compact, frozen=True):
    """What the Job controller says."""

    active: int = 0
    failed: int = 0
    start_time: str = ""
    completion_time: str = ""
    conditions: tuple[JobCondition, ...] = ()


class LauncherJob(Object, frozen=True):
    """The Job that runs mpirun."""

    spec: LauncherSpec = LauncherSpec()
    status: LauncherStatus = LauncherStatus()

    def condition(self, kind: str) -> JobCondition | None:
        """The condition of a type, where it is true."""
        true = (each for each in self.status.conditions if each.status == "True")
        return next((each for each in true if each.type == kind), None)

    @property
    def is_done(self) -> bool:
        return bool(self.condition("Complete") or self.condition("Failed"))


class StoredConfigMap(Object, frozen=True):
    """The hostfile, the script that discovers hosts, and what must survive a restart."""

    metadata: Metadata = Metadata()
    data: dict[str, str] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        # Each job has the same scripts; a copy for each would be most of what a cache holds.
        own = {name: scripts.shared(text) for name, text in self.data.items()}
        force_setattr(self, "data", own)


def stored_note(
    config_map: StoredConfigMap | None, name: str, decode: Callable[[str], T], default: T
) -> T:
    """An annotation of a ConfigMap; the default if there is none that we have written."""
    text = config_map.metadata.annotations.get(name) if config_map else None
    try:
        return decode(text) if text else default
    except (msgspec.MsgspecError, RecursionError):
        return default


class ServiceSpec(Compact, frozen=True):
    """The part of a Service that the operator maintains."""

    selector: dict[str, str] = msgspec.field(default_factory=dict)
    publish_not_ready_addresses: bool = False


class StoredService(Object, frozen=True):
    """The Service through which hosts find each other."""

    spec: ServiceSpec = ServiceSpec()

    @property
    def builtins(self) -> Mapping[str, Any]:
        """Its spec as Kubernetes writes it."""
        found: Mapping[str, Any] = msgspec.to_builtins(self.spec)
        return found


class StoredPodGroup(Object, frozen=True):
    """A PodGroup of either kind of gang scheduler."""

    spec: dict[str, Any] = msgspec.field(default_factory=dict)


class PriorityClass(Object, frozen=True):
    """How important pods are."""

    value: int = 0


def is_controlled_by(found: Object, job: types.MPIJob) -> bool:
    """Whether the job owns an object; a former job of the same name is another one."""
    owner = found.metadata.controller
    return owner is not None and owner.uid == job.metadata.uid


def moment(text: str | None) -> datetime | None:
    """A time as Kubernetes writes it; None where there is none."""
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
