"""A few jobs at a time: what was begun is finished before more is begun.

Jobs that all get on a little at a time take longer than one after the other, for each step of each
is noticed, counted and written by pods in the cluster. What takes long must not hold up the
others: a job with very much to write, or whose writes a webhook delays, gives its place away.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_LONG = 2.0  # seconds
_MANY = 32  # writes


class Slot:
    """That a job is worked on. It may go on when it has left, but does not count any more."""

    def __init__(self, places: asyncio.Semaphore) -> None:
        self._places = places
        self._is_held = True

    def leave(self) -> None:
        if self._is_held:
            self._is_held = False
            self._places.release()

    def leave_if_many(self, writes: int) -> None:
        if writes > _MANY:
            self.leave()


class ReconcileLimiter:
    """So many places."""

    def __init__(self, places: int) -> None:
        self._places = asyncio.Semaphore(places)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[Slot]:
        """Hold a place, but not for long; who came first gets it first."""
        await self._places.acquire()
        place = Slot(self._places)
        enough = asyncio.get_running_loop().call_later(_LONG, place.leave)
        try:
            yield place
        finally:
            enough.cancel()
            place.leave()
