"""The task and the cost of one measurement, and how to measure it."""

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
    """Where to measure, and how much."""

    kubeconfig: str
    namespace: str
    count: int
    concurrency: int = 64


@dataclass
class Cost:
    """The cost of `count` operations or objects."""

    count: int = 0
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    bytes: int = 0


@contextmanager
def timed(cost: Cost, count: int) -> Iterator[None]:
    """Measure the time of the block in this process."""
    cost.count = count
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    cost.wall_seconds = time.perf_counter() - wall
    cost.cpu_seconds = time.process_time() - cpu


@contextmanager
def traced(cost: Cost) -> Iterator[None]:
    """Measure the memory that the block allocates and keeps."""
    tracemalloc.start()
    yield
    cost.bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()


async def at_once(
    do: Callable[[T], Awaitable[object]], things: Sequence[T], concurrency: int
) -> None:
    """Call `do` for each item, with limited concurrency."""
    waiting = iter(things)

    async def work() -> None:
        for thing in waiting:
            await do(thing)

    await asyncio.gather(*(work() for _ in range(concurrency)))
