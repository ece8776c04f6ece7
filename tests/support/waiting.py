"""Waiting for something to become true: with a deadline, and no longer than needed."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable


async def until(fact: Callable[[], Awaitable[bool] | bool], seconds: float = 30) -> None:
    """Return as soon as `fact` is true; TimeoutError if it does not become so."""
    async with asyncio.timeout(seconds):
        while not await _value(fact()):
            await asyncio.sleep(0.02)


async def _value(answer: Awaitable[bool] | bool) -> bool:
    return await answer if inspect.isawaitable(answer) else bool(answer)
