"""Types of cached objects, with only the fields that are read.

A pod is 6 KB of JSON and 35 KB of Python dicts; the fields that a controller needs fit in 1 KB. A
cached type derives from `Object` and gives every field a default, because one odd object must not
stop the others. The pod that most readers need is here; define another type for other fields.
"""

import msgspec

from .resources import Key


class Compact(msgspec.Struct, frozen=True, rename="camel", gc=False, kw_only=True):
    """A part of a cached object. gc=False, because it is never part of a cycle."""


class OwnerReference(Compact, frozen=True):
    """An owner of an object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Metadata(Compact, frozen=True):
    """The metadata of an object, without annotations and managed fields."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: str = ""
    deletion_timestamp: str = ""

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)

    @property
    def controller(self) -> OwnerReference | None:
        """The one owner that manages this object."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class Object(Compact, frozen=True):
    """An object of any kind. By itself it keeps the metadata only; cached types derive from it."""

    metadata: Metadata = Metadata()


class Condition(Compact, frozen=True):
    """A condition in a status."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class Waiting(Compact, frozen=True):
    """Why a container does not run yet."""

    reason: str = ""
    message: str = ""


class Terminated(Compact, frozen=True):
    """How a container ended."""

    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    finished_at: str | None = None  # null where a node does not know it


class Running(Compact, frozen=True):
    """Since when a container runs."""

    started_at: str | None = None


class ContainerState(Compact, frozen=True):
    """One of these, or none if it is unknown."""

    running: Running | None = None
    waiting: Waiting | None = None
    terminated: Terminated | None = None


class ContainerStatus(Compact, frozen=True):
    """What the node says about one container."""

    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodStatus(Compact, frozen=True):
    """The status of a pod, from its node and the scheduler."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    start_time: str | None = None  # when its node accepted it
    conditions: tuple[Condition, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class PodSpec(Compact, frozen=True):
    """The node of a pod."""

    node_name: str = ""


class Pod(Object, frozen=True):
    """The fields of a pod that controllers read."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


def is_newer(version: str, than: str) -> bool:
    """Whether one resourceVersion comes after another one.

    They are decimal numbers of any size (Kubernetes promises that since 1.35 and has kept it since
    1.0), so the longer one is the larger one.
    """
    return (len(version), version) > (len(than), than)
