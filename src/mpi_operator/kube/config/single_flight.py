"""One run for everybody who asks while it lasts."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Calls that overlap share one run, with its result or its error.

    A caller that is cancelled leaves the others their run; the last one to leave cancels it.
    """

    def __init__(self, run: Callable[[], Awaitable[T]]) -> None:
        self._run = run
        self._task: asyncio.Task[T] | None = None
        self._waiting = 0

    async def __call__(self) -> T:
        if self._task is None or self._task.done():
            self._task, self._waiting = asyncio.create_task(self._started()), 0
        return await self._wait_for(self._task)

    async def _started(self) -> T:
        return await self._run()

    async def _wait_for(self, task: asyncio.Task[T]) -> T:
        self._waiting += 1
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if self._waiting == 1 and not task.done():
                task.cancel()
                # Not before it has cleaned up: a program may have to be stopped.
                await asyncio.wait([task])
            raise
        finally:
            self._waiting -= 1
