"""A thread with its own event loop, in which an asynchronous context is held open."""

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress
from typing import Generic, Self, TypeVar

T = TypeVar("T")

logger = logging.getLogger(__name__)


class LoopThread(Generic[T]):
    """Enters a context in a thread of its own, and leaves it there when it is left here.

    thread = LoopThread(serve, "webhook")
    port = await thread.start()     # raises what entering the context raises
    async with thread:
        ...
    """

    def __init__(self, enter: Callable[[], AbstractAsyncContextManager[T]], name: str) -> None:
        self._enter = enter
        self._started: Future[T] = Future()
        self._ended: Future[None] = Future()
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)

    async def start(self) -> T:
        """Enter the context; its value."""
        self._thread.start()
        return await asyncio.wrap_future(self._started)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        with suppress(RuntimeError):  # the thread has ended and closed its loop
            self._loop.call_soon_threadsafe(self._stop.set)
        try:
            await self.ended()
        except Exception as error:
            facts = {"part": self._thread.name, "error": repr(error)}
            logger.warning("A thread ended with an error", extra=facts)

    async def ended(self) -> None:
        """Wait until the thread has ended; raises what ended it, if that is an error."""
        await asyncio.shield(asyncio.wrap_future(self._ended))

    def _main(self) -> None:
        try:
            asyncio.run(self._hold())
        except BaseException as error:
            if not self._started.done():
                self._started.set_exception(error)
            self._ended.set_exception(error)
        else:
            self._ended.set_result(None)

    async def _hold(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        async with self._enter() as value:
            self._started.set_result(value)
            await self._stop.wait()
