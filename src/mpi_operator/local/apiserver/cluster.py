"""A cluster in this process: the same `Client` as an API server's, without I/O.

    verb ──► updates, scale (what it should be) ──► garbage (what follows) ──► table
                                                                                          │
    pages, watch ◄────────────────────── selection ◄──────────────────── history ◄────────┘

One event loop has it to itself. Every verb lets others have a turn and then does its work at once,
so nobody ever sees half of a write. It lives as long as the process: what has to outlive that is
for whoever runs it to keep.
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

from . import api_errors, object_names, updates
from .garbage_collector import Garbage
from .object_store import Place, Shelf, Table
from .scale import scale_of, scaled
from .selection import parse_selection
from .served_kinds import BUILT_IN, Kind, Scale
from .stored_object import Stored, cleaned
from .watches import Watch

# At least so many changes of a kind are remembered for those who watch it.
_HISTORY = 10_000
# How often another end is tried for a name of which only the beginning is given.
_NAMING_TRIES = 8


# What containers printed: the node knows. The pod exists when this is called.
Logs: TypeAlias = Callable[[str, str, LogOptions], AsyncGenerator[bytes, None]]


class LocalCluster:
    """Objects in memory, with everything that `kube.client.Client` promises.

    `logs` may be given later: a node that has them needs the cluster first.
    """

    def __init__(
        self,
        kinds: Iterable[Kind] = (),
        *,
        logs: Logs | None = None,
        clock: Callable[[], datetime] = now,
        history_limit: int = _HISTORY,
    ) -> None:
        self.logs = logs
        self._clock = clock
        self._table = Table((*BUILT_IN, *kinds), history_limit)
        self._garbage = Garbage(self._table, clock)

    def register(self, kind: Kind) -> None:
        """Have one more kind of objects."""
        self._table.add_kind(kind)

    async def create(self, resource: Resource, manifest: Manifest) -> Manifest:
        """Store a new object, in the namespace it names; AlreadyExists where the name is taken."""
        shelf = self._shelf(resource)
        namespace, name = resource.key_of(manifest)
        await _turn()
        given = cleaned(manifest)
        name = name or self._made_up_name(shelf, namespace, given)
        object_names.check(resource, namespace, name)
        if Key(namespace, name) in shelf.objects:
            raise api_errors.already_exists(resource, name)
        uid = str(uuid.uuid4())
        new = updates.new_object(shelf.kind, given, namespace, name, uid, self._clock())
        return self._garbage.store(Place(resource, Key(namespace, name)), new)

    async def get(
        self, resource: Resource, name: str, namespace: str = "", *, subresource: str = ""
    ) -> Manifest:
        place, shelf = self._place(resource, name, namespace), self._shelf(resource)
        _check_subresource(shelf.kind, subresource)
        await _turn()
        known = self._known(place).manifest()
        return scale_of(known, _scale(shelf.kind)) if subresource == "scale" else known

    async def pages(
        self,
        resource: Resource,
        namespace: str = "",
        selector: Selector = Selector(),
        *,
        limit: int = 500,
    ) -> AsyncGenerator[Page, None]:
        """The objects of one moment, a page at a time."""
        shelf = self._shelf(resource)
        selection = parse_selection(shelf.kind, namespace, selector)
        await _turn()
        found, version = shelf.selected(selection), str(self._table.version)
        for start in range(0, len(found) or 1, limit):
            page = [stored.raw for stored in found[start : start + limit]]
            yield Page(page, version, is_last=start + limit >= len(found))
            await _turn()

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        selector: Selector = Selector(),
    ) -> Listing:
        """The objects of one moment, all at once."""
        shelf = self._shelf(resource)
        selection = parse_selection(shelf.kind, namespace, selector)
        await _turn()
        found = [stored.manifest() for stored in shelf.selected(selection)]
        return Listing(found, str(self._table.version))

    async def watch(
        self, resource: Resource, namespace: str = "", options: WatchOptions = WatchOptions()
    ) -> AsyncGenerator[WatchEvent, None]:
        """Changes after `resource_version`, and bookmarks, until `timeout`."""
        selection = parse_selection(self._shelf(resource).kind, namespace, options)
        await _turn()
        events = Watch(self._table, resource, selection).events(options)
        async with aclosing(events):
            async for event in events:
                yield event

    async def replace(
        self, resource: Resource, manifest: Manifest, *, subresource: str = ""
    ) -> Manifest:
        """Store the object as given; with a resourceVersion in it, only if nobody else wrote."""
        place = self._place(resource, *reversed(resource.key_of(manifest)))
        return await self._write(place, subresource, lambda _: cleaned(manifest))

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
        place = self._place(resource, name, namespace)
        return await self._write(
            place, subresource, lambda known: cleaned(updates.merged(known, patch))
        )

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        options: DeleteOptions = DeleteOptions(),
    ) -> None:
        """Delete one object; Conflict where it has another `uid` or `resource_version`."""
        place = self._place(resource, name, namespace)
        self._shelf(resource)
        await _turn()
        known = self._known(place)
        _check_deletion(resource, known, options.uid, options.resource_version)
        self._garbage.delete(place, known, options)

    async def delete_collection(
        self,
        resource: Resource,
        namespace: str = "",
        selector: Selector = Selector(),
        *,
        propagation: Propagation = Propagation.BACKGROUND,
    ) -> None:
        """Delete every object that the selectors choose."""
        shelf = self._shelf(resource)
        selection = parse_selection(shelf.kind, namespace, selector)
        options = DeleteOptions(propagation=propagation)
        await _turn()
        for stored in shelf.selected(selection):
            place = Place(resource, stored.key)
            # One of them may own another, which is gone then.
            if known := self._table.find(place):
                self._garbage.delete(place, known, options)

    async def log(
        self, name: str, namespace: str, options: LogOptions = LogOptions()
    ) -> AsyncGenerator[bytes, None]:
        """The lines that a container of a pod printed, without their line ends."""
        place = self._place(PODS, name, namespace)
        await _turn()
        self._known(place)
        if self.logs is None:
            raise api_errors.internal("this cluster has no node, so nothing was printed")
        lines = self.logs(name, namespace, options)
        left = math.inf if options.limit_bytes is None else options.limit_bytes
        async with aclosing(lines):
            async for line in lines:
                if left <= 0:
                    return
                yield line if len(line) <= left else line[: int(left)]
                left -= len(line) + 1

    async def _write(
        self, place: Place, subresource: str, change: Callable[[Manifest], Manifest]
    ) -> Manifest:
        """Change an object, or one of the subresources that are other views of it."""
        kind = self._shelf(place.resource).kind
        _check_subresource(kind, subresource)
        await _turn()
        known = self._known(place).manifest()
        if subresource == "scale":
            return self._write_scale(place, kind, known, change)
        wanted = change(known)
        if subresource == "status":
            new = updates.with_status(place.resource, known, wanted)
        else:
            new = updates.changed(kind, known, wanted)
        return self._store(place, known, new)

    def _write_scale(
        self, place: Place, kind: Kind, known: Manifest, change: Callable[[Manifest], Manifest]
    ) -> Manifest:
        paths = _scale(kind)
        wanted = change(scale_of(known, paths))
        updates.check_preconditions(place.resource, known, wanted)
        new = updates.changed(kind, known, scaled(known, wanted, paths))
        return scale_of(self._store(place, known, new), paths)

    def _store(self, place: Place, known: Manifest, new: Manifest) -> Manifest:
        """What changes nothing is no write: nobody hears of it."""
        return known if new == known else self._garbage.store(place, new)

    def _shelf(self, resource: Resource) -> Shelf:
        return self._table.shelf(resource)

    def _place(self, resource: Resource, name: str, namespace: str) -> Place:
        resource.path(name, namespace)  # a name that could not be in a URL is refused as there
        return Place(resource, Key(namespace if resource.namespaced else "", name))

    def _known(self, place: Place) -> Stored:
        known = self._table.find(place)
        if known is None:
            raise api_errors.not_found(place.resource, place.key.name)
        return known

    def _made_up_name(self, shelf: Shelf, namespace: str, manifest: Manifest) -> str:
        beginning: str = (manifest.get("metadata") or {}).get("generateName") or ""
        if not beginning:
            return ""
        name = object_names.made_up(beginning)
        for _ in range(_NAMING_TRIES):
            if Key(namespace, name) not in shelf.objects:
                break
            name = object_names.made_up(beginning)
        return name


async def _turn() -> None:
    """Let others go on, as waiting for an answer would."""
    await asyncio.sleep(0)


def _check_subresource(kind: Kind, subresource: str) -> None:
    served = {"": True, "status": kind.has_status, "scale": kind.scale is not None}
    if not served.get(subresource):
        raise api_errors.no_such_place()


def _scale(kind: Kind) -> Scale:
    if kind.scale is None:
        raise api_errors.no_such_place()
    return kind.scale


def _check_deletion(resource: Resource, known: Stored, uid: str, version: str) -> None:
    name = known.key.name
    if uid and uid != known.uid:
        why = (
            f"the UID in the precondition ({uid}) does not match the UID in record ({known.uid}). "
            "The object might have been deleted and then recreated"
        )
        raise api_errors.conflict(resource, name, why)
    if version and version != str(known.version):
        why = (
            f"the ResourceVersion in the precondition ({version}) does not match the "
            f"ResourceVersion in record ({known.version}). The object might have been modified"
        )
        raise api_errors.conflict(resource, name, why)
