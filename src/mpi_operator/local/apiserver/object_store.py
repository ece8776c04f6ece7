"""Everything that is stored, and what happened to it.

Versions are numbers of the whole cluster, as etcd's are: each write has one, and it is larger than
those of all writes before. What is found by something else than its name has an index: objects by
uid, objects by the uid of who owns them, and objects that wait for those they own to go.
"""

from collections.abc import Iterable
from typing import NamedTuple

from mpi_operator.kube.resources import Key, Manifest, Resource

from . import api_errors
from .selection import Selection
from .served_kinds import Kind
from .stored_object import Owner, Stored, stored
from .watch_cache import Change, History

FOREGROUND = "foregroundDeletion"


class Place(NamedTuple):
    """Where an object is."""

    resource: Resource
    key: Key


class Shelf:
    """The objects of one kind."""

    def __init__(self, kind: Kind, history_limit: int) -> None:
        self.kind = kind
        self.objects: dict[Key, Stored] = {}
        self.history = History(history_limit)

    def selected(self, selection: Selection) -> list[Stored]:
        """What there is now, in the order of namespaces and names."""
        chosen = (each for each in self.objects.values() if selection.has(each))
        return sorted(chosen, key=lambda each: each.key)


class Table:
    """The objects of every kind."""

    def __init__(self, kinds: Iterable[Kind], history_limit: int) -> None:
        self.version = 1  # as in an empty etcd: to a watch, "0" means "whatever you have"
        self.waiting: set[str] = set()  # the uids of who waits for those they own to go
        self._history_limit = history_limit
        self._shelves: dict[Resource, Shelf] = {}
        self._resources: dict[tuple[str, str], Resource] = {}
        self._places: dict[str, Place] = {}
        self._dependents: dict[str, set[Place]] = {}
        for kind in kinds:
            self.add_kind(kind)

    def add_kind(self, kind: Kind) -> None:
        resource = kind.resource
        if resource in self._shelves:
            raise ValueError(f"the cluster has {resource} already")
        self._shelves[resource] = Shelf(kind, self._history_limit)
        self._resources[resource.group, resource.kind] = resource

    def shelf(self, resource: Resource) -> Shelf:
        found = self._shelves.get(resource)
        if found is None:
            raise api_errors.no_such_place()
        return found

    def find(self, place: Place) -> Stored | None:
        return self._shelves[place.resource].objects.get(place.key)

    def with_uid(self, uid: str) -> tuple[Place, Stored] | None:
        place = self._places.get(uid)
        known = self.find(place) if place else None
        return (place, known) if place and known else None

    def dependents(self, uid: str) -> list[Place]:
        """The objects that say that they are owned by this one."""
        return sorted(self._dependents.get(uid, ()), key=lambda place: place.key)

    def knows_kind(self, owner: Owner) -> bool:
        return (owner.group, owner.kind) in self._resources

    def is_there(self, owner: Owner, namespace: str) -> bool:
        """Whether that very owner exists, where something in this namespace may be owned."""
        place = self._places.get(owner.uid)
        return (
            place is not None
            and place.resource == self._resources.get((owner.group, owner.kind))
            and place.key.name == owner.name
            and place.key.namespace in ("", namespace)
        )

    def put(self, resource: Resource, manifest: Manifest) -> Stored:
        """Store a new object, or a new version of one."""
        shelf = self._shelves[resource]
        self.version += 1
        new = stored(manifest, self.version, shelf.kind.fields)
        old = shelf.objects.get(new.key)
        shelf.objects[new.key] = new
        self._index(Place(resource, new.key), old, new)
        shelf.history.add(Change(self.version, old, new))
        return new

    def remove(self, place: Place) -> Stored:
        """Forget an object; the one that was there."""
        shelf = self._shelves[place.resource]
        old = shelf.objects.pop(place.key)
        self.version += 1
        self._index(place, old, None)
        shelf.history.add(Change(self.version, old, None))
        return old

    def _index(self, place: Place, old: Stored | None, new: Stored | None) -> None:
        if old is not None:
            self._places.pop(old.uid)
            self.waiting.discard(old.uid)
            for owner in old.owners:
                self._unindex(owner.uid, place)
        if new is not None:
            self._places[new.uid] = place
            if new.is_deleting and FOREGROUND in new.finalizers:
                self.waiting.add(new.uid)
            for owner in new.owners:
                self._dependents.setdefault(owner.uid, set()).add(place)

    def _unindex(self, owner: str, place: Place) -> None:
        places = self._dependents.get(owner, set())
        places.discard(place)
        if not places:
            self._dependents.pop(owner, None)
