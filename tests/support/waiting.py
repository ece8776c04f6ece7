"""Waiting for something to become true: with a deadline, and no longer than needed."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable


async def until(fact: Callable[[], Awaitable[bool] | bool], seconds: float = 30) -> None:
    """Return as soon as `fact` is true; TimeoutError if it does not become so."""
    async with asyncio.timeout(seconds):
        while not await _value(fact()):
            await asyncio.sleep(0.02)


def block_until(fact: Callable[[], bool], seconds: float = 30) -> None:
    """The same in tests that are not asynchronous."""
    deadline = time.monotonic() + seconds
    while not fact():
        if time.monotonic() > deadline:
            raise TimeoutError(f"this did not become true within {seconds} s")
        time.sleep(0.02)


async def _value(answer: Awaitable[bool] | bool) -> bool:
    return await answer if inspect.isawaitable(answer) else bool(answer)
