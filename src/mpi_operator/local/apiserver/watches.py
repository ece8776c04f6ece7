"""A watch: the history of a kind as one watcher sees it.

Which events there are depends on who looks: an object that leaves the selection is deleted for this
watcher, and one that enters it is new.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

import msgspec

from mpi_operator.kube.client import INITIAL_EVENTS_END, EventType, WatchEvent, WatchOptions
from mpi_operator.kube.resources import Resource

from . import api_errors
from .object_store import Table
from .selection import Selection
from .watch_cache import Change

# How often a watcher of a quiet kind is told how far it has come.
_BOOKMARK_SECONDS = 60.0
# A timer may be early by the resolution of its clock. Who then waits for the rest does so in vain
# where the clock stands still, as in virtual time.
_EARLY = 0.001
# After so many events others have a turn, however fast they are read.
_TURN = 100

_encode = msgspec.json.Encoder().encode


class Watch:
    """One watcher of a kind."""

    def __init__(self, table: Table, resource: Resource, selection: Selection) -> None:
        self._table = table
        self._resource = resource
        self._shelf = table.shelf(resource)
        self._selection = selection

    async def events(self, options: WatchOptions) -> AsyncGenerator[WatchEvent, None]:
        """What is there, where the watcher does not know it, and then what happens."""
        end = None if options.timeout is None else _now() + options.timeout
        if options.initial_events or options.resource_version in ("", "0"):
            place = self._shelf.history.end
            for known in self._everything(with_end=options.initial_events):
                yield known
        else:
            place = self._shelf.history.place_after(self._past(options.resource_version))
        is_quiet = False
        while True:
            while place < self._shelf.history.end:
                event = self._event(self._shelf.history.at(place))
                place += 1
                if event is not None:
                    yield event
                if place % _TURN == 0:
                    await asyncio.sleep(0)
            # All that has happened has been told, and nobody else has had a turn since.
            if is_quiet:
                yield self._bookmark()
            if end is not None and _now() >= end - _EARLY:
                return
            is_quiet = not await self._has_more(end)

    def _everything(self, *, with_end: bool) -> list[WatchEvent]:
        """What there is, now: a watcher may take its time with it."""
        found = [
            WatchEvent(EventType.ADDED, stored.raw)
            for stored in self._shelf.selected(self._selection)
        ]
        return [*found, self._bookmark(ends_initial_events=True)] if with_end else found

    def _past(self, resource_version: str) -> int:
        """A version that was handed out; the rest is refused."""
        if not (resource_version.isascii() and resource_version.isdecimal()):
            raise api_errors.bad_request(f'invalid resource version: "{resource_version}"')
        version = int(resource_version)
        if version > self._table.version:
            # From another life of this cluster, which is as good as forgotten.
            why = f"Too large resource version: {version}, current: {self._table.version}"
            raise api_errors.expired(why)
        return version

    def _event(self, change: Change) -> WatchEvent | None:
        """What a change means to this watcher, if anything."""
        old = change.old if self._selection.has(change.old) else None
        new = change.new if self._selection.has(change.new) else None
        if new is not None:
            return WatchEvent(EventType.MODIFIED if old else EventType.ADDED, new.raw)
        return WatchEvent(EventType.DELETED, old.at(change.version)) if old else None

    async def _has_more(self, end: float | None) -> bool:
        """Wait for the next change, until it is time for a bookmark or for the end."""
        seconds = _BOOKMARK_SECONDS if end is None else min(_BOOKMARK_SECONDS, end - _now())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._shelf.history.more()
                return True
        return False

    def _bookmark(self, *, ends_initial_events: bool = False) -> WatchEvent:
        metadata: dict[str, object] = {"resourceVersion": str(self._table.version)}
        if ends_initial_events:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        kind, api_version = self._resource.kind, self._resource.api_version
        told = {"kind": kind, "apiVersion": api_version, "metadata": metadata}
        return WatchEvent(EventType.BOOKMARK, msgspec.Raw(_encode(told)))


def _now() -> float:
    return asyncio.get_running_loop().time()
