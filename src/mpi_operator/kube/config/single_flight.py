"""Overlapping calls share one run."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass
class _Flight(Generic[T]):
    """A run, and how many callers wait for it: they may leave after the next run has started."""

    task: asyncio.Task[T]
    waiting: int = 0


class SingleFlight(Generic[T]):
    """Calls that overlap share one run, with its result or its error.

    Cancelling one caller does not affect the others; cancelling the last one cancels the run.
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
                # Wait for its clean-up: it may have to stop a program.
                await asyncio.wait([flight.task])
            raise
        finally:
            flight.waiting -= 1
