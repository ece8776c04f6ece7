"""An API server in this process: a `Client` without I/O.

    create, replace, patch ──► updates, scale ──► garbage_collector ──► object_store
                                                                             │
    pages, list, watch ◄────────────── selectors ◄────────── watch_cache ◄───┘

It belongs to one event loop. Every request first yields to the loop and then does its work in one
step, so no client ever sees half of a write. Nothing outlives the process; `runs` keeps records.
"""

import asyncio
import math
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from datetime import datetime
from typing import TypeAlias

from mpi_operator.kube.client import (
    DeleteOptions,
    Listing,
    LogOptions,
    Page,
    Propagation,
    Selector,
    WatchEvent,
    WatchOptions,
)
from mpi_operator.kube.resources import PODS, Key, Manifest, Resource
from mpi_operator.local.times import now

from . import api_errors, deletion, object_names, updates
from .garbage_collector import GarbageCollector
from .object_store import Collection, ObjectRef, ObjectStore
from .scale_subresource import scale_of, scaled
from .selectors import parse_selection
from .served_kinds import BUILT_IN, Kind, Scale
from .stored_object import StoredObject, without_nulls
from .watches import Watch

# At least so many changes of each kind are kept for its watches.
_WATCH_CACHE_SIZE = 10_000
# How often a generated name that is taken is generated again.
_NAME_ATTEMPTS = 8


# Reads the logs of a pod that exists; the node implements it.
Logs: TypeAlias = Callable[[str, str, LogOptions], AsyncGenerator[bytes, None]]


class LocalCluster:
    """A `kube.client.Client` over objects in memory."""

    def __init__(
        self,
        kinds: Iterable[Kind] = (),
        *,
        logs: Logs | None = None,
        clock: Callable[[], datetime] = now,
        watch_cache_size: int = _WATCH_CACHE_SIZE,
    ) -> None:
        self._logs = logs
        self._clock = clock
        self._store = ObjectStore((*BUILT_IN, *kinds), watch_cache_size)
        self._garbage_collector = GarbageCollector(self._store, clock)

    def register(self, kind: Kind) -> None:
        """Serve one more kind."""
        self._store.register(kind)

    async def create(self, resource: Resource, manifest: Manifest) -> Manifest:
        """Store a new object, in the namespace it names; AlreadyExists if the name is taken."""
        collection = self._collection(resource)
        namespace, name = resource.key_of(manifest)
        await _yield()
        given = without_nulls(manifest)
        name = name or self._generated_name(collection, namespace, given)
        object_names.validate(resource, namespace, name)
        if Key(namespace, name) in collection.objects:
            raise api_errors.already_exists(resource, name)
        uid = str(uuid.uuid4())
        new = updates.new_object(collection.kind, given, namespace, name, uid, self._clock())
        return self._garbage_collector.put(ObjectRef(resource, Key(namespace, name)), new)

    async def get(
        self, resource: Resource, name: str, namespace: str = "", *, subresource: str = ""
    ) -> Manifest:
        ref, collection = self._ref(resource, name, namespace), self._collection(resource)
        _check_subresource(collection.kind, subresource)
        await _yield()
        known = self._existing(ref).manifest()
        return scale_of(known, _scale(collection.kind)) if subresource == "scale" else known

    async def pages(
        self,
        resource: Resource,
        namespace: str = "",
        selector: Selector = Selector(),
        *,
        limit: int = 500,
    ) -> AsyncGenerator[Page, None]:
        """The objects at one version, a page at a time."""
        collection = self._collection(resource)
        selection = parse_selection(collection.kind, namespace, selector)
        await _yield()
        found, version = collection.select(selection), str(self._store.version)
        for start in range(0, len(found) or 1, limit):
            page = [stored.raw for stored in found[start : start + limit]]
            yield Page(page, version)
            await _yield()

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        selector: Selector = Selector(),
    ) -> Listing:
        """The objects at one version, all at once."""
        collection = self._collection(resource)
        selection = parse_selection(collection.kind, namespace, selector)
        await _yield()
        found = [stored.manifest() for stored in collection.select(selection)]
        return Listing(found, str(self._store.version))

    async def watch(
        self, resource: Resource, namespace: str = "", options: WatchOptions = WatchOptions()
    ) -> AsyncGenerator[WatchEvent, None]:
        """Changes after `resource_version`, and bookmarks, until `timeout`."""
        selection = parse_selection(self._collection(resource).kind, namespace, options)
        await _yield()
        events = Watch(self._store, resource, selection).events(options)
        async with aclosing(events):
            async for event in events:
                yield event

    async def replace(
        self, resource: Resource, manifest: Manifest, *, subresource: str = ""
    ) -> Manifest:
        """Store the object as given; with a resourceVersion only if that is the latest."""
        ref = self._ref(resource, *reversed(resource.key_of(manifest)))
        return await self._write(ref, subresource, lambda _: without_nulls(manifest))

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Manifest,
        namespace: str = "",
        *,
        subresource: str = "",
    ) -> Manifest:
        """Merge a patch into an object (RFC 7386): null removes a field."""
        ref = self._ref(resource, name, namespace)
        return await self._write(
            ref, subresource, lambda known: without_nulls(updates.merge_patch(known, patch))
        )

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        options: DeleteOptions = DeleteOptions(),
    ) -> None:
        """Delete one object; Conflict if `uid` or `resource_version` are given and differ."""
        ref = self._ref(resource, name, namespace)
        self._collection(resource)
        await _yield()
        known = self._existing(ref)
        deletion.check_preconditions(resource, known, options)
        self._garbage_collector.delete(ref, known, options)

    async def delete_collection(
        self,
        resource: Resource,
        namespace: str = "",
        selector: Selector = Selector(),
        *,
        propagation: Propagation = Propagation.BACKGROUND,
    ) -> None:
        """Delete every object that matches the selectors."""
        collection = self._collection(resource)
        selection = parse_selection(collection.kind, namespace, selector)
        options = DeleteOptions(propagation=propagation)
        await _yield()
        for stored in collection.select(selection):
            ref = ObjectRef(resource, stored.key)
            # It may have been a dependent of one deleted before.
            if known := self._store.find(ref):
                self._garbage_collector.delete(ref, known, options)

    async def log(
        self, name: str, namespace: str, options: LogOptions = LogOptions()
    ) -> AsyncGenerator[bytes, None]:
        """The log lines of a container, without their line ends."""
        ref = self._ref(PODS, name, namespace)
        await _yield()
        self._existing(ref)
        if self._logs is None:
            raise api_errors.internal("the cluster has no node, so it has no logs")
        lines = self._logs(name, namespace, options)
        left = math.inf if options.limit_bytes is None else options.limit_bytes
        async with aclosing(lines):
            async for line in lines:
                if left <= 0:
                    return
                yield line if len(line) <= left else line[: int(left)]
                left -= len(line) + 1

    async def _write(
        self, ref: ObjectRef, subresource: str, change: Callable[[Manifest], Manifest]
    ) -> Manifest:
        """Update an object or one of its subresources."""
        kind = self._collection(ref.resource).kind
        _check_subresource(kind, subresource)
        await _yield()
        known = self._existing(ref).manifest()
        if subresource == "scale":
            return self._write_scale(ref, kind, known, change)
        wanted = change(known)
        if subresource == "status":
            new = updates.status_updated(ref.resource, known, wanted)
        else:
            new = updates.updated(kind, known, wanted)
        return self._put(ref, known, new)

    def _write_scale(
        self, ref: ObjectRef, kind: Kind, known: Manifest, change: Callable[[Manifest], Manifest]
    ) -> Manifest:
        paths = _scale(kind)
        wanted = change(scale_of(known, paths))
        updates.check_preconditions(ref.resource, known, wanted)
        new = updates.updated(kind, known, scaled(known, wanted, paths))
        return scale_of(self._put(ref, known, new), paths)

    def _put(self, ref: ObjectRef, known: Manifest, new: Manifest) -> Manifest:
        """Store a new version, unless it is equal to the current one: then there is no event."""
        return known if new == known else self._garbage_collector.put(ref, new)

    def _collection(self, resource: Resource) -> Collection:
        return self._store.collection(resource)

    def _ref(self, resource: Resource, name: str, namespace: str) -> ObjectRef:
        resource.path(name, namespace)  # raises ValueError for a name that cannot be in a URL
        return ObjectRef(resource, Key(namespace if resource.namespaced else "", name))

    def _existing(self, ref: ObjectRef) -> StoredObject:
        known = self._store.find(ref)
        if known is None:
            raise api_errors.not_found(ref.resource, ref.key.name)
        return known

    def _generated_name(self, collection: Collection, namespace: str, manifest: Manifest) -> str:
        prefix: str = (manifest.get("metadata") or {}).get("generateName") or ""
        if not prefix:
            return ""
        name = object_names.generate(prefix)
        for _ in range(_NAME_ATTEMPTS):
            if Key(namespace, name) not in collection.objects:
                break
            name = object_names.generate(prefix)
        return name


async def _yield() -> None:
    """Let other tasks run, as waiting for a network would."""
    await asyncio.sleep(0)


def _check_subresource(kind: Kind, subresource: str) -> None:
    served = {"": True, "status": kind.has_status, "scale": kind.scale is not None}
    if not served.get(subresource):
        raise api_errors.not_served()


def _scale(kind: Kind) -> Scale:
    if kind.scale is None:
        raise api_errors.not_served()
    return kind.scale
