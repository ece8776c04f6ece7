"""Limits concurrent writes; jobs take turns, however much each of them has to write."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager


class WriteLimiter:
    """A limit on concurrent writes. Waiting keys take turns: one write of each, then the next."""

    def __init__(self, slots: int) -> None:
        self._free = slots
        self._waiting: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def slot(self, key: Hashable) -> AsyncIterator[None]:
        """Hold one slot, on behalf of `key`."""
        await self._take(key)
        try:
            yield
        finally:
            self._give_back()

    async def _take(self, key: Hashable) -> None:
        if self._free > 0 and not self._waiting:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give_back()  # our turn came at the same moment
            raise

    def _give_back(self) -> None:
        while self._waiting:
            key, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[key] = turns  # to the end of the queue
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
