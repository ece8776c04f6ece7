"""Workers that take keys from a queue until it is closed."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import TypeVar

from .workqueue import QueueClosed, WorkQueue

K = TypeVar("K", bound=Hashable)

# Brings one object a step closer to what it should be; says in how many seconds to look again.
Handle = Callable[[K], Awaitable[float | None]]

_logger = logging.getLogger(__name__)


async def work(queue: WorkQueue[K], handle: Handle[K], concurrency: int) -> None:
    """Handle keys, `concurrency` of them at a time, until the queue is closed.

    Closing lets running handlers finish; cancelling cancels them, and their keys wait again. What
    a handler raises is logged here and nowhere else, and its key is retried.
    """
    async with asyncio.TaskGroup() as workers:
        for _ in range(concurrency):
            workers.create_task(_work(queue, handle))


async def _work(queue: WorkQueue[K], handle: Handle[K]) -> None:
    while True:
        try:
            key = await queue.get()
        except QueueClosed:
            return
        try:
            await _handle(queue, handle, key)
        finally:
            queue.done(key)


async def _handle(queue: WorkQueue[K], handle: Handle[K], key: K) -> None:
    try:
        seconds = await handle(key)
    except asyncio.CancelledError:
        if _is_cancelled():
            queue.add(key)
            raise
        # Something that the handler waited for was cancelled. Let through, this would end the
        # worker without a word, and after a few of them nobody would work any more.
        _retry(queue, key)
    except Exception:
        _retry(queue, key)
    else:
        queue.forget(key)
        if seconds is not None:
            queue.add_after(key, seconds)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _retry(queue: WorkQueue[K], key: K) -> None:
    queue.retry(key)
    facts = {"queue": queue.name, "key": str(key), "failures": queue.failures(key)}
    _logger.exception("Handling failed, will try again", extra=facts)
