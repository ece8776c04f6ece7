"""The latest changes to the objects of one kind, which its watches read.

A watch is a position in the one list of changes and has no queue of its own, so a slow one costs
nothing and delays no other. The list is finite: a watch that falls too far behind gets the API
server's Expired error, and its client lists again.
"""

import asyncio
from bisect import bisect_right
from typing import NamedTuple

from . import api_errors
from .stored_object import StoredObject


class Change(NamedTuple):
    """An object before and after a write: `old` is None if created, `new` is None if deleted."""

    version: int
    old: StoredObject | None
    new: StoredObject | None


class WatchCache:
    """The latest changes: at least `capacity` of them and at most twice as many."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._changes: list[Change] = []
        self._evicted = 0  # how many changes are no longer kept
        self._last_evicted = 0  # the version of the last of them
        self._changed = asyncio.Event()

    @property
    def end(self) -> int:
        """The position after the latest change."""
        return self._evicted + len(self._changes)

    def add(self, change: Change) -> None:
        self._changes.append(change)
        if len(self._changes) > 2 * self._capacity:
            self._evict()
        self._changed.set()
        self._changed = asyncio.Event()

    def position_after(self, version: int) -> int:
        """The position of the first change after a version; Gone if that may be evicted."""
        if version < self._last_evicted:
            why = f"too old resource version: {version} ({self._last_evicted})"
            raise api_errors.expired(why)
        return self._evicted + bisect_right(self._changes, version, key=lambda it: it.version)

    def at(self, position: int) -> Change:
        """The change at a position before `end`; Gone if it is evicted."""
        if position < self._evicted:
            raise api_errors.expired("The resourceVersion for the provided watch is too old.")
        return self._changes[position - self._evicted]

    async def wait(self) -> None:
        """Wait for the next change."""
        await self._changed.wait()

    def _evict(self) -> None:
        count = len(self._changes) - self._capacity
        self._last_evicted = self._changes[count - 1].version
        self._evicted += count
        del self._changes[:count]
