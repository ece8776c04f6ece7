"""One run for everybody who asks while it lasts."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass
class _Flight(Generic[T]):
    """A run, and how many wait for it: those of the last one may still be on their way out."""

    task: asyncio.Task[T]
    waiting: int = 0


class SingleFlight(Generic[T]):
    """Calls that overlap share one run, with its result or its error.

    A caller that is cancelled leaves the others their run; the last one to leave cancels it.
    """

    def __init__(self, run: Callable[[], Awaitable[T]]) -> None:
        self._run = run
        self._flight: _Flight[T] | None = None

    async def __call__(self) -> T:
        if self._flight is None or self._flight.task.done():
            self._flight = _Flight(asyncio.create_task(self._started()))
        return await self._wait_for(self._flight)

    async def _started(self) -> T:
        return await self._run()

    @staticmethod
    async def _wait_for(flight: "_Flight[T]") -> T:
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        except asyncio.CancelledError:
            if flight.waiting == 1 and not flight.task.done():
                flight.task.cancel()
                # Not before it has cleaned up: a program may have to be stopped.
                await asyncio.wait([flight.task])
            raise
        finally:
            flight.waiting -= 1
