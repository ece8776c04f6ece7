"""What happened to the objects of one kind, in order, and whoever waits to hear of it.

Watchers hold a place in the one history and no queue of their own, so a slow one costs nothing and
holds up nobody. The history is finite: who stays behind for too long is told that the past is gone,
as by an API server, and lists again.
"""

import asyncio
from bisect import bisect_right
from typing import NamedTuple

from . import api_errors
from .stored_object import Stored


class Change(NamedTuple):
    """An object before and after. Without `old` it is new, without `new` it is gone."""

    version: int
    old: Stored | None
    new: Stored | None


class History:
    """The latest changes, at least `limit` of them and at most twice as many."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._changes: list[Change] = []
        self._forgotten = 0  # how many changes came before the ones that are kept
        self._last_forgotten = 0  # the version of the last of them
        self._more = asyncio.Event()

    @property
    def end(self) -> int:
        """The place after all that has happened."""
        return self._forgotten + len(self._changes)

    def add(self, change: Change) -> None:
        self._changes.append(change)
        if len(self._changes) > 2 * self._limit:
            self._forget()
        self._more.set()
        self._more = asyncio.Event()

    def place_after(self, version: int) -> int:
        """Where the changes after a version begin; Gone where some of them are forgotten."""
        if version < self._last_forgotten:
            why = f"too old resource version: {version} ({self._last_forgotten})"
            raise api_errors.expired(why)
        return self._forgotten + bisect_right(self._changes, version, key=lambda it: it.version)

    def at(self, place: int) -> Change:
        """The change at a place before `end`; Gone where it is forgotten."""
        if place < self._forgotten:
            why = f"too slow a watcher: version {self._last_forgotten} is forgotten already"
            raise api_errors.expired(why)
        return self._changes[place - self._forgotten]

    async def more(self) -> None:
        """Wait for the next change."""
        await self._more.wait()

    def _forget(self) -> None:
        count = len(self._changes) - self._limit
        self._last_forgotten = self._changes[count - 1].version
        self._forgotten += count
        del self._changes[:count]
