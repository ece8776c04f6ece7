"""What one measurement is asked for, what it answers, and how it measures."""

import asyncio
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Task:
    """Where and how much."""

    kubeconfig: str
    namespace: str
    count: int
    concurrency: int = 64


@dataclass
class Cost:
    """What it took, for `count` of something."""

    count: int = 0
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    bytes: int = 0


@contextmanager
def timed(cost: Cost, count: int) -> Iterator[None]:
    """Fill in the times that the block takes, of this process alone."""
    cost.count = count
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    cost.wall_seconds = time.perf_counter() - wall
    cost.cpu_seconds = time.process_time() - cpu


@contextmanager
def traced(cost: Cost) -> Iterator[None]:
    """Fill in the bytes that the block leaves behind."""
    tracemalloc.start()
    yield
    cost.bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()


async def at_once(
    do: Callable[[T], Awaitable[object]], things: Sequence[T], concurrency: int
) -> None:
    """Do it for each of them, so many at a time."""
    waiting = iter(things)

    async def work() -> None:
        for thing in waiting:
            await do(thing)

    await asyncio.gather(*(work() for _ in range(concurrency)))
