"""Deleting, and what follows from it: objects do not outlive those that own them.

    the owner goes in the ...      what it owns
    background (usual)             goes when the owner is gone
    foreground                     goes first; the owner waits for what says that it blocks it
    neither (orphan)               stays, and forgets its owner

Everything happens at once, in one turn of the loop, and not some time later as on Kubernetes. What
is to be looked at stands in a line, so a chain of owners is no recursion and a circle has an end.
"""

from collections import deque
from collections.abc import Callable
from datetime import datetime

from mpi_operator.kube.client import DeleteOptions, Propagation
from mpi_operator.kube.resources import Manifest

from .deletion import after_deletion, is_over
from .object_store import FOREGROUND, Place, Table
from .stored_object import Owner, Stored


class Garbage:
    """Takes objects away, and those that nobody owns any more."""

    def __init__(self, table: Table, clock: Callable[[], datetime]) -> None:
        self._table = table
        self._clock = clock
        self._line: deque[Place] = deque()  # those whose owners are to be looked at

    def store(self, place: Place, manifest: Manifest) -> Manifest:
        """Store a new version. If it is the last one, because nothing keeps it, it is gone."""
        old = self._table.find(place)
        if is_over(manifest):
            self._remove(place)
            self._collect()
            return manifest
        new = self._table.put(place.resource, manifest)
        if new.owners and (old is None or old.owners != new.owners):
            self._line.append(place)
        self._collect()
        return new.manifest()

    def delete(self, place: Place, stored: Stored, options: DeleteOptions) -> None:
        """Delete an object as far as it can be, and what has to go with it."""
        self._delete(place, stored, options)
        self._collect()

    def _delete(self, place: Place, stored: Stored, options: DeleteOptions) -> None:
        if options.propagation is Propagation.ORPHAN:
            self._orphan(stored.uid)
        kind, manifest = self._table.shelf(place.resource).kind, stored.manifest()
        marked = after_deletion(kind, manifest, self._clock(), options)
        if is_over(marked):
            self._remove(place)
        elif marked != manifest:
            new = self._table.put(place.resource, marked)
            if FOREGROUND in new.finalizers:
                self._line.extend(self._table.dependents(new.uid))

    def _remove(self, place: Place) -> None:
        gone = self._table.remove(place)
        self._line.extend(self._table.dependents(gone.uid))

    def _orphan(self, uid: str) -> None:
        for place in self._table.dependents(uid):
            self._drop_owners(place, {uid})

    def _collect(self) -> None:
        """Look at everybody in line, and at those who come into it meanwhile."""
        while self._line or self._free_waiting():
            if self._line:
                self._judge(self._line.popleft())

    def _judge(self, place: Place) -> None:
        """Let an object go if none of its owners stays, else forget those that do not."""
        stored = self._table.find(place)
        if stored is None or stored.is_deleting or not stored.owners:
            return
        staying = [owner for owner in stored.owners if self._stays(owner, place)]
        if len(staying) == len(stored.owners):
            return
        if staying:
            self._drop_owners(place, {owner.uid for owner in stored.owners if owner not in staying})
            return
        is_awaited = any(owner.uid in self._table.waiting for owner in stored.owners)
        has_dependents = bool(self._table.dependents(stored.uid))
        in_foreground = is_awaited and has_dependents
        how = Propagation.FOREGROUND if in_foreground else Propagation.BACKGROUND
        self._delete(place, stored, DeleteOptions(propagation=how))

    def _stays(self, owner: Owner, place: Place) -> bool:
        if not self._table.knows_kind(owner):
            return True  # nobody can tell
        is_there = self._table.is_there(owner, place.key.namespace)
        return is_there and owner.uid not in self._table.waiting

    def _drop_owners(self, place: Place, uids: set[str]) -> None:
        stored = self._table.find(place)
        if stored is None:
            return
        manifest = stored.manifest()
        metadata = manifest["metadata"]
        left = [each for each in metadata["ownerReferences"] if each.get("uid") not in uids]
        metadata["ownerReferences"] = left
        if not left:
            del metadata["ownerReferences"]
        self._table.put(place.resource, manifest)

    def _free_waiting(self) -> bool:
        """Let those go who wait for nobody, or only for each other; whether there were any."""
        free = set(self._table.waiting)
        while blocked := {uid for uid in free if self._is_blocked(uid, free)}:
            free -= blocked
        for uid in free:
            self._end_wait(uid)
        return bool(free)

    def _is_blocked(self, uid: str, free: set[str]) -> bool:
        """Whether an object owned by this one blocks it, and would still be there without it."""
        for place in self._table.dependents(uid):
            stored = self._table.find(place)
            if stored is None or not any(it.is_blocking for it in stored.owners if it.uid == uid):
                continue
            if stored.uid not in free or not is_over(_without_wait(stored.manifest())):
                return True
        return False

    def _end_wait(self, uid: str) -> None:
        found = self._table.with_uid(uid)
        if found is None:
            return
        place, stored = found
        manifest = _without_wait(stored.manifest())
        if is_over(manifest):
            self._remove(place)
        else:
            self._table.put(place.resource, manifest)


def _without_wait(manifest: Manifest) -> Manifest:
    metadata = manifest["metadata"]
    left = [each for each in metadata.get("finalizers", ()) if each != FOREGROUND]
    rest = {name: value for name, value in metadata.items() if name != "finalizers"}
    return {**manifest, "metadata": {**rest, **({"finalizers": left} if left else {})}}
