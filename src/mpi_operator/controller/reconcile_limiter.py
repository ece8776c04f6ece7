"""Limits concurrent reconciles, so that jobs which were begun are finished before others begin.

Jobs that all advance a little at a time take longer than one after the other, because each step of
each is noticed, counted and written by every controller of the cluster. Slow reconciles must not
hold up the others: a job with many writes, or whose writes a webhook delays, gives up its slot.
docs/explanation/concurrency.md has the measurements.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_LONG = 2.0  # seconds
_MANY = 32  # writes


class Slot:
    """One of the concurrent reconciles. After `leave` it continues, but does not count."""

    def __init__(self, slots: asyncio.Semaphore) -> None:
        self._slots = slots
        self._is_held = True

    def leave(self) -> None:
        if self._is_held:
            self._is_held = False
            self._slots.release()

    def leave_if_many(self, writes: int) -> None:
        if writes > _MANY:
            self.leave()


class ReconcileLimiter:
    """So many reconciles at a time, not counting slow ones."""

    def __init__(self, slots: int) -> None:
        self._slots = asyncio.Semaphore(slots)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Slot]:
        """Hold a slot for at most 2s; first come, first served."""
        await self._slots.acquire()
        slot = Slot(self._slots)
        timeout = asyncio.get_running_loop().call_later(_LONG, slot.leave)
        try:
            yield slot
        finally:
            timeout.cancel()
            slot.leave()
