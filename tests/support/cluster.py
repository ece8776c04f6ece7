"""A cluster in memory, as far as a controller notices: objects, versions, and how they go.

It checks nothing and watches nothing. What an API server would refuse is for tests on a real one.
"""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import count
from typing import Any, Generic, TypeVar, cast

import msgspec

from mpi_operator.api import labels
from mpi_operator.build import pod_group
from mpi_operator.build.settings import Settings
from mpi_operator.controller.cached_types import (
    MPI_JOBS,
    PRIORITY_CLASSES,
    LauncherJob,
    Pod,
    PriorityClass,
    StoredConfigMap,
    StoredJob,
    StoredPodGroup,
    StoredService,
)
from mpi_operator.controller.caches import Caches, job_key
from mpi_operator.kube import errors
from mpi_operator.kube.objects import Object
from mpi_operator.kube.resources import CONFIG_MAPS, JOBS, PODS, SERVICES, Key, Manifest, Resource

T = TypeVar("T", bound=Object)
T_ = TypeVar("T_", bound=Manifest | None)

_GRACE = timedelta(seconds=30)


def timestamp(moment: datetime) -> str:
    """A time as Kubernetes writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


class Cluster:
    """What is stored. Every object that comes out is the caller's own."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._objects: dict[tuple[Resource, Key], Manifest] = {}
        self._numbers = count(1)

    def find(self, resource: Resource, key: Key) -> Manifest | None:
        return _copy(self._objects.get((resource, key)))

    def get(self, resource: Resource, key: Key) -> Manifest:
        found = self.find(resource, key)
        if found is None:
            raise errors.NotFound(errors.Status(f'{resource} "{key.name}" not found', "", 404))
        return found

    def all(self, resource: Resource) -> list[Manifest]:
        return [_copy(found) for (kind, _), found in self if kind == resource]

    def __iter__(self) -> Iterator[tuple[tuple[Resource, Key], Manifest]]:
        return iter(tuple(self._objects.items()))

    def create(self, resource: Resource, manifest: Manifest) -> Manifest:
        key = _key(manifest)
        if (resource, key) in self._objects:
            message = f'{resource} "{key.name}" already exists'
            raise errors.AlreadyExists(errors.Status(message, "AlreadyExists", 409))
        new = _copy(manifest)
        new["metadata"].setdefault("uid", f"uid-{next(self._numbers)}")
        new["metadata"] |= {"creationTimestamp": timestamp(self._clock()), "generation": 1}
        return self._store(resource, new)

    def merge(self, resource: Resource, key: Key, patch: Manifest) -> Manifest:
        known = self.get(resource, key)
        _check(known, patch["metadata"].get("uid", "") if "metadata" in patch else "")
        merged = _merged(known, patch)
        return known if merged == known else self._store(resource, _counted(known, merged))

    def replace(self, resource: Resource, manifest: Manifest, subresource: str = "") -> Manifest:
        known = self.get(resource, _key(manifest))
        _check(known, manifest["metadata"].get("uid", ""))
        version = manifest["metadata"].get("resourceVersion")
        if version and version != known["metadata"]["resourceVersion"]:
            raise errors.Conflict(errors.Status("the object has been modified", "Conflict", 409))
        new = _copy(manifest)
        if subresource == "status":
            new = {**known, "status": new.get("status", {})}
        elif "status" in known:
            new = {**new, "status": known["status"]}
        new["metadata"] = {**known["metadata"], **new["metadata"]}
        return self._store(resource, _counted(known, new))

    def delete(
        self, resource: Resource, key: Key, *, uid: str = "", by_force: bool = False
    ) -> None:
        """Delete an object. A pod that runs somewhere goes when its node says so."""
        known = self.get(resource, key)
        _check(known, uid)
        if by_force or not _has_to_end(resource, known):
            self.remove(resource, key)
        elif "deletionTimestamp" not in known["metadata"]:
            known["metadata"]["deletionTimestamp"] = timestamp(self._clock() + _GRACE)
            self._store(resource, known)

    def remove(self, resource: Resource, key: Key) -> None:
        """Take an object away, and then what it owns."""
        gone = self._objects.pop((resource, key), None)
        uid = gone["metadata"]["uid"] if gone else None
        for (kind, owned), found in self:
            owners = found["metadata"].get("ownerReferences") or ()
            if any(owner["uid"] == uid for owner in owners):
                self.remove(kind, owned)

    def _store(self, resource: Resource, new: Manifest) -> Manifest:
        new["metadata"]["resourceVersion"] = str(next(self._numbers))
        self._objects[resource, _key(new)] = new
        return _copy(new)


class Shelf(Generic[T]):
    """The objects of one kind, as a cache of the controller shows them: it may fall behind."""

    def __init__(
        self, cluster: Cluster, resource: Resource, kind: type[T], *, is_narrow: bool = True
    ) -> None:
        self.resource = resource
        self._cluster = cluster
        self._decode = msgspec.json.Decoder(kind).decode
        self._decoded: dict[str, T] = {}
        self._is_narrow = is_narrow
        self._frozen: dict[Key, Manifest] | None = None

    def freeze(self) -> None:
        """Hear of nothing any more but our own writes."""
        self._frozen = {_key(manifest): manifest for manifest in self._cluster.all(self.resource)}

    def thaw(self) -> None:
        """Catch up."""
        self._frozen = None

    def wrote(self, manifest: Manifest) -> None:
        if self._frozen is not None:
            self._frozen[_key(manifest)] = manifest

    def get(self, key: Key) -> T | None:
        return next((known for known in self if known.metadata.key == key), None)

    def of_job(self, job: Key) -> list[T]:
        return [known for known in self if job_key(known) == job]

    def __iter__(self) -> Iterator[T]:
        for manifest in self._manifests():
            if not self._is_narrow or _is_labelled(manifest):
                yield self._typed(manifest)

    def _manifests(self) -> list[Manifest]:
        if self._frozen is not None:
            return list(self._frozen.values())
        return [each for (resource, _), each in self._cluster if resource == self.resource]

    def _typed(self, manifest: Manifest) -> T:
        version = manifest["metadata"]["resourceVersion"]
        if version not in self._decoded:
            self._decoded[version] = self._decode(msgspec.json.encode(manifest))
        return self._decoded[version]


class Shelves:
    """The caches of a controller."""

    def __init__(self, cluster: Cluster, settings: Settings) -> None:
        self.jobs = Shelf(cluster, MPI_JOBS, StoredJob, is_narrow=False)
        self.pods = Shelf(cluster, PODS, Pod)
        self.launchers = Shelf(cluster, JOBS, LauncherJob)
        self.services = Shelf(cluster, SERVICES, StoredService)
        self.config_maps = Shelf(cluster, CONFIG_MAPS, StoredConfigMap)
        self.pod_groups = None
        self.priority_classes = None
        if settings.gang_scheduler:
            self.pod_groups = Shelf(cluster, pod_group.resource(settings), StoredPodGroup)
            self.priority_classes = Shelf(cluster, PRIORITY_CLASSES, PriorityClass, is_narrow=False)

    def wrote(self, resource: Resource, manifest: Manifest) -> None:
        for shelf in self:
            if shelf.resource == resource:
                shelf.wrote(manifest)

    def __iter__(self) -> Iterator[Shelf[Any]]:
        return (shelf for shelf in vars(self).values() if isinstance(shelf, Shelf))

    @property
    def as_caches(self) -> Caches:
        return cast("Caches", self)


def caches(cluster: Cluster, settings: Settings) -> Caches:
    """The cluster as an observer sees it."""
    return Shelves(cluster, settings).as_caches


def _copy(manifest: T_) -> T_:
    """Another one like it; much faster than `deepcopy`."""
    copy: T_ = msgspec.json.decode(msgspec.json.encode(manifest))
    return copy


def _key(manifest: Manifest) -> Key:
    return Key(manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"])


def _is_labelled(manifest: Manifest) -> bool:
    given = manifest["metadata"].get("labels") or {}
    return bool(given.get(labels.OPERATOR_NAME) == labels.OPERATOR)


def _check(known: Manifest, uid: str) -> None:
    if uid and uid != known["metadata"]["uid"]:
        raise errors.Conflict(errors.Status("the uid is another one", "Conflict", 409))


def _has_to_end(resource: Resource, known: Manifest) -> bool:
    has_ended = known.get("status", {}).get("phase") in ("Succeeded", "Failed")
    return resource == PODS and bool(known["spec"].get("nodeName")) and not has_ended


def _counted(known: Manifest, new: Manifest) -> Manifest:
    if known.get("spec") != new.get("spec"):
        new["metadata"]["generation"] = known["metadata"]["generation"] + 1
    return new


def _merged(known: Any, patch: Any) -> Any:
    """A JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    base = known if isinstance(known, dict) else {}
    merged = {name: value for name, value in base.items() if patch.get(name, value) is not None}
    return merged | {
        name: _merged(base.get(name), value) for name, value in patch.items() if value is not None
    }
