"""Workers that take keys from a queue until it is closed."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import TypeVar

from .workqueue import QueueClosed, WorkQueue

K = TypeVar("K", bound=Hashable)

# Reconciles one object; returns the seconds until the next reconcile, if one is needed.
Handle = Callable[[K], Awaitable[float | None]]

_logger = logging.getLogger(__name__)


async def run_workers(queue: WorkQueue[K], handle: Handle[K], concurrency: int) -> None:
    """Handle keys, `concurrency` of them at a time, until the queue is closed.

    Closing lets running handlers finish; cancelling cancels them and puts their keys back. Errors
    of a handler are logged here and nowhere else, and its key is retried.
    """
    async with asyncio.TaskGroup() as workers:
        for _ in range(concurrency):
            workers.create_task(_run_worker(queue, handle))


async def _run_worker(queue: WorkQueue[K], handle: Handle[K]) -> None:
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
        # Something that the handler waited for was cancelled, not this worker. Raising it would
        # end the worker silently, and after a few of them no worker would be left.
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
    _logger.exception("Handler failed, retrying", extra=facts)
