"""Deletes objects, and with them the dependents that have no owner left.

    propagation      dependents
    Background       are deleted once the owner is gone (the default)
    Foreground       are deleted first; the owner waits for those with blockOwnerDeletion
    Orphan           stay, and lose their owner reference

Unlike on Kubernetes all of it happens within the request, in one turn of the event loop. Dependents
go through a queue, so long chains of owners need no recursion and cycles terminate.
"""

from collections import deque
from collections.abc import Callable
from datetime import datetime

from mpi_operator.kube.client import DeleteOptions, Propagation
from mpi_operator.kube.resources import Manifest

from .deletion import is_gone, marked_for_deletion
from .object_store import FOREGROUND_FINALIZER, ObjectRef, ObjectStore
from .stored_object import OwnerReference, StoredObject


class GarbageCollector:
    """Writes to the object store and deletes what becomes garbage by that."""

    def __init__(self, store: ObjectStore, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._clock = clock
        self._queue: deque[ObjectRef] = deque()  # dependents whose owners have to be checked

    def put(self, ref: ObjectRef, manifest: Manifest) -> Manifest:
        """Store a new version, or remove an object whose last finalizer it drops."""
        old = self._store.find(ref)
        if is_gone(manifest):
            self._remove(ref)
            self._collect()
            return manifest
        new = self._store.put(ref.resource, manifest)
        if new.owners and (old is None or old.owners != new.owners):
            self._queue.append(ref)
        self._collect()
        return new.manifest()

    def delete(self, ref: ObjectRef, stored: StoredObject, options: DeleteOptions) -> None:
        """Remove an object or mark it for deletion, and do the same to its dependents."""
        self._delete(ref, stored, options)
        self._collect()

    def _delete(self, ref: ObjectRef, stored: StoredObject, options: DeleteOptions) -> None:
        if options.propagation is Propagation.ORPHAN:
            for dependent in self._store.dependents(stored.uid):
                self._remove_owner_references(dependent, {stored.uid})
        kind, manifest = self._store.collection(ref.resource).kind, stored.manifest()
        marked = marked_for_deletion(kind, manifest, self._clock(), options)
        if is_gone(marked):
            self._remove(ref)
        elif marked != manifest:
            new = self._store.put(ref.resource, marked)
            if FOREGROUND_FINALIZER in new.finalizers:
                self._queue.extend(self._store.dependents(new.uid))

    def _remove(self, ref: ObjectRef) -> None:
        removed = self._store.remove(ref)
        self._queue.extend(self._store.dependents(removed.uid))

    def _collect(self) -> None:
        """Work through the queue, including what is added to it meanwhile."""
        while self._queue or self._finish_foreground_deletions():
            if self._queue:
                self._collect_dependent(self._queue.popleft())

    def _collect_dependent(self, ref: ObjectRef) -> None:
        """Delete an object without an owner left; else remove its references to absent owners."""
        stored = self._store.find(ref)
        if stored is None or stored.is_deleting or not stored.owners:
            return
        keeping = [owner for owner in stored.owners if self._keeps(owner, ref)]
        if len(keeping) == len(stored.owners):
            return
        if keeping:
            absent = {owner.uid for owner in stored.owners if owner not in keeping}
            self._remove_owner_references(ref, absent)
            return
        in_foreground = self._store.foreground_deletions
        is_awaited = any(owner.uid in in_foreground for owner in stored.owners)
        has_dependents = bool(self._store.dependents(stored.uid))
        foreground = is_awaited and has_dependents
        propagation = Propagation.FOREGROUND if foreground else Propagation.BACKGROUND
        self._delete(ref, stored, DeleteOptions(propagation=propagation))

    def _keeps(self, owner: OwnerReference, ref: ObjectRef) -> bool:
        """Whether an owner keeps its dependent; one of a kind that is not served always does."""
        if not self._store.serves(owner):
            return True
        exists = self._store.has_owner(owner, ref.key.namespace)
        return exists and owner.uid not in self._store.foreground_deletions

    def _remove_owner_references(self, ref: ObjectRef, uids: set[str]) -> None:
        stored = self._store.find(ref)
        if stored is None:
            return
        manifest = stored.manifest()
        metadata = manifest["metadata"]
        left = [each for each in metadata["ownerReferences"] if each.get("uid") not in uids]
        metadata["ownerReferences"] = left
        if not left:
            del metadata["ownerReferences"]
        self._store.put(ref.resource, manifest)

    def _finish_foreground_deletions(self) -> bool:
        """Finish those that wait for no dependent, or only for each other; False if none do."""
        free = set(self._store.foreground_deletions)
        while blocked := {uid for uid in free if self._is_blocked(uid, free)}:
            free -= blocked
        for uid in free:
            self._finish_foreground_deletion(uid)
        return bool(free)

    def _is_blocked(self, uid: str, free: set[str]) -> bool:
        """Whether a blocking dependent would remain even if all of `free` were finished."""
        for ref in self._store.dependents(uid):
            stored = self._store.find(ref)
            if stored is None or not any(
                owner.blocks_deletion for owner in stored.owners if owner.uid == uid
            ):
                continue
            if stored.uid not in free or not is_gone(_without_finalizer(stored.manifest())):
                return True
        return False

    def _finish_foreground_deletion(self, uid: str) -> None:
        found = self._store.with_uid(uid)
        if found is None:
            return
        ref, stored = found
        manifest = _without_finalizer(stored.manifest())
        if is_gone(manifest):
            self._remove(ref)
        else:
            self._store.put(ref.resource, manifest)


def _without_finalizer(manifest: Manifest) -> Manifest:
    """The object without the finalizer of a foreground deletion."""
    metadata = manifest["metadata"]
    left = [each for each in metadata.get("finalizers", ()) if each != FOREGROUND_FINALIZER]
    rest = {name: value for name, value in metadata.items() if name != "finalizers"}
    return {**manifest, "metadata": {**rest, **({"finalizers": left} if left else {})}}
