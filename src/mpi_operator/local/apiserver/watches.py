"""A watch: the watch cache of a kind, turned into the events of one client.

Events depend on the selection of the client: an object that stops matching is DELETED for it, and
one that starts matching is ADDED.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

import msgspec

from mpi_operator.kube.client import INITIAL_EVENTS_END, EventType, WatchEvent, WatchOptions
from mpi_operator.kube.resources import Resource

from . import api_errors
from .object_store import ObjectStore
from .selectors import Selection
from .watch_cache import Change

# The interval of bookmarks while nothing changes.
_BOOKMARK_SECONDS = 60.0
# A timer may fire early by the resolution of its clock. Waiting for the rest would never end where
# the clock stands still, as in virtual time.
_TIMER_TOLERANCE = 0.001
# Yield to the event loop after so many events, however fast the client reads them.
_EVENTS_PER_TURN = 100

_encode = msgspec.json.Encoder().encode


class Watch:
    """One client's watch of a kind."""

    def __init__(self, store: ObjectStore, resource: Resource, selection: Selection) -> None:
        self._store = store
        self._resource = resource
        self._collection = store.collection(resource)
        self._selection = selection

    async def events(self, options: WatchOptions) -> AsyncGenerator[WatchEvent, None]:
        """The existing objects if the client asks for them, and then every change."""
        end = None if options.timeout is None else _now() + options.timeout
        cache = self._collection.watch_cache
        if options.initial_events or options.resource_version in ("", "0"):
            position = cache.end
            for event in self._initial_events(with_bookmark=options.initial_events):
                yield event
        else:
            position = cache.position_after(self._parse_version(options.resource_version))
        is_quiet = False
        while True:
            while position < cache.end:
                change = self._event(cache.at(position))
                position += 1
                if change is not None:
                    yield change
                if position % _EVENTS_PER_TURN == 0:
                    await asyncio.sleep(0)
            # No other task has run since the last change was read, so the bookmark is up to date.
            if is_quiet:
                yield self._bookmark()
            if end is not None and _now() >= end - _TIMER_TOLERANCE:
                return
            is_quiet = not await self._wait_for_change(end)

    def _initial_events(self, *, with_bookmark: bool) -> list[WatchEvent]:
        """The existing objects, as a list: they may change while the client reads."""
        found = [
            WatchEvent(EventType.ADDED, stored.raw)
            for stored in self._collection.select(self._selection)
        ]
        return [*found, self._bookmark(ends_initial_events=True)] if with_bookmark else found

    def _parse_version(self, resource_version: str) -> int:
        """The version as a number; Gone if it is from the future."""
        if not (resource_version.isascii() and resource_version.isdecimal()):
            raise api_errors.bad_request(f'invalid resource version: "{resource_version}"')
        version = int(resource_version)
        if version > self._store.version:
            # It is from an earlier cluster, whose changes are lost.
            why = f"Too large resource version: {version}, current: {self._store.version}"
            raise api_errors.expired(why)
        return version

    def _event(self, change: Change) -> WatchEvent | None:
        """The event of a change for this client, if any."""
        old = change.old if self._selection.matches(change.old) else None
        new = change.new if self._selection.matches(change.new) else None
        if new is not None:
            return WatchEvent(EventType.MODIFIED if old else EventType.ADDED, new.raw)
        return WatchEvent(EventType.DELETED, old.at(change.version)) if old else None

    async def _wait_for_change(self, end: float | None) -> bool:
        """Wait for the next change; False when a bookmark or the end is due first."""
        seconds = _BOOKMARK_SECONDS if end is None else min(_BOOKMARK_SECONDS, end - _now())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._collection.watch_cache.wait()
                return True
        return False

    def _bookmark(self, *, ends_initial_events: bool = False) -> WatchEvent:
        metadata: dict[str, object] = {"resourceVersion": str(self._store.version)}
        if ends_initial_events:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        kind, api_version = self._resource.kind, self._resource.api_version
        bookmark = {"kind": kind, "apiVersion": api_version, "metadata": metadata}
        return WatchEvent(EventType.BOOKMARK, msgspec.Raw(_encode(bookmark)))


def _now() -> float:
    return asyncio.get_running_loop().time()
