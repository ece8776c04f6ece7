"""All objects of the cluster, with the indexes and the watch caches over them.

Resource versions count the writes of the whole cluster, as etcd's revisions do. Objects are indexed
by UID, by the UIDs of their owners, and by whether they wait for their dependents to be deleted.
"""

from collections.abc import Iterable
from typing import NamedTuple

from mpi_operator.kube.resources import Key, Manifest, Resource

from . import api_errors
from .selectors import Selection
from .served_kinds import Kind
from .stored_object import OwnerReference, StoredObject, encode_object
from .watch_cache import Change, WatchCache

FOREGROUND_FINALIZER = "foregroundDeletion"


class ObjectRef(NamedTuple):
    """Which object: its resource, namespace and name."""

    resource: Resource
    key: Key


class Collection:
    """The objects of one kind."""

    def __init__(self, kind: Kind, watch_cache_size: int) -> None:
        self.kind = kind
        self.objects: dict[Key, StoredObject] = {}
        self.watch_cache = WatchCache(watch_cache_size)

    def select(self, selection: Selection) -> list[StoredObject]:
        """The selected objects, sorted by namespace and name."""
        found = (each for each in self.objects.values() if selection.matches(each))
        return sorted(found, key=lambda each: each.key)


class ObjectStore:
    """The objects of every kind."""

    def __init__(self, kinds: Iterable[Kind], watch_cache_size: int) -> None:
        self.version = 1  # as in an empty etcd: to a watch, "0" means any version
        self.foreground_deletions: set[str] = set()  # UIDs that wait for their dependents
        self._watch_cache_size = watch_cache_size
        self._collections: dict[Resource, Collection] = {}
        self._resources: dict[tuple[str, str], Resource] = {}
        self._refs: dict[str, ObjectRef] = {}  # by UID
        self._dependents: dict[str, set[ObjectRef]] = {}  # by the UID of an owner
        for kind in kinds:
            self.register(kind)

    def register(self, kind: Kind) -> None:
        resource = kind.resource
        if resource in self._collections:
            raise ValueError(f"{resource} is already registered")
        self._collections[resource] = Collection(kind, self._watch_cache_size)
        self._resources[resource.group, resource.kind] = resource

    def collection(self, resource: Resource) -> Collection:
        found = self._collections.get(resource)
        if found is None:
            raise api_errors.not_served()
        return found

    def find(self, ref: ObjectRef) -> StoredObject | None:
        return self._collections[ref.resource].objects.get(ref.key)

    def with_uid(self, uid: str) -> tuple[ObjectRef, StoredObject] | None:
        ref = self._refs.get(uid)
        stored = self.find(ref) if ref else None
        return (ref, stored) if ref and stored else None

    def dependents(self, uid: str) -> list[ObjectRef]:
        """The objects with an owner reference to this UID."""
        return sorted(self._dependents.get(uid, ()), key=lambda ref: ref.key)

    def serves(self, owner: OwnerReference) -> bool:
        """Whether the cluster has the kind of an owner."""
        return (owner.group, owner.kind) in self._resources

    def has_owner(self, owner: OwnerReference, namespace: str) -> bool:
        """Whether this owner exists and may own objects in this namespace."""
        ref = self._refs.get(owner.uid)
        return (
            ref is not None
            and ref.resource == self._resources.get((owner.group, owner.kind))
            and ref.key.name == owner.name
            and ref.key.namespace in ("", namespace)
        )

    def put(self, resource: Resource, manifest: Manifest) -> StoredObject:
        """Store a new object, or a new version of one."""
        collection = self._collections[resource]
        self.version += 1
        new = encode_object(manifest, self.version, collection.kind.fields)
        old = collection.objects.get(new.key)
        collection.objects[new.key] = new
        self._index(ObjectRef(resource, new.key), old, new)
        collection.watch_cache.add(Change(self.version, old, new))
        return new

    def remove(self, ref: ObjectRef) -> StoredObject:
        """Remove an object and return it."""
        collection = self._collections[ref.resource]
        old = collection.objects.pop(ref.key)
        self.version += 1
        self._index(ref, old, None)
        collection.watch_cache.add(Change(self.version, old, None))
        return old

    def _index(self, ref: ObjectRef, old: StoredObject | None, new: StoredObject | None) -> None:
        if old is not None:
            self._refs.pop(old.uid)
            self.foreground_deletions.discard(old.uid)
            for owner in old.owners:
                self._remove_dependent(owner.uid, ref)
        if new is not None:
            self._refs[new.uid] = ref
            if new.is_deleting and FOREGROUND_FINALIZER in new.finalizers:
                self.foreground_deletions.add(new.uid)
            for owner in new.owners:
                self._dependents.setdefault(owner.uid, set()).add(ref)

    def _remove_dependent(self, owner_uid: str, ref: ObjectRef) -> None:
        dependents = self._dependents.get(owner_uid, set())
        dependents.discard(ref)
        if not dependents:
            self._dependents.pop(owner_uid, None)
