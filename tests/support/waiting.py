"""Waiting for something to become true: with a deadline, and no longer than needed."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable


async def until(fact: Callable[[], Awaitable[bool] | bool], seconds: float = 60) -> None:
    """Return as soon as `fact` is true; TimeoutError if it does not become so.

    Usually after milliseconds. But Kubernetes' garbage collector learns of a new kind only after
    half a minute, and machines are busy at times.
    """
    clock = asyncio.get_running_loop().time
    start = clock()
    async with asyncio.timeout(seconds):
        while not await _value(fact()):
            await asyncio.sleep(_pause(clock() - start))


def block_until(fact: Callable[[], bool], seconds: float = 30) -> None:
    """The same in tests that are not asynchronous."""
    start = time.monotonic()
    while not fact():
        waited = time.monotonic() - start
        if waited > seconds:
            raise TimeoutError(f"this did not become true within {seconds} s")
        time.sleep(_pause(waited))


def _pause(waited: float) -> float:
    """Seconds until the next check: a tenth of the time so far.

    Checks take CPU from what is waited for, so they become rarer.
    """
    return min(0.02 + waited / 10, 0.25)


async def _value(answer: Awaitable[bool] | bool) -> bool:
    return await answer if inspect.isawaitable(answer) else bool(answer)
