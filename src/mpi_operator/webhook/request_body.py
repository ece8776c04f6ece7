"""Reads the bodies of requests within limits: every pod of the cluster can send some.

A body takes up to thirty times its size once it is decoded. So few are decoded at a time, large
ones one by one, and a text with too many values not at all.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

# A job has at most 1.5 MiB in etcd, and an update is reviewed with both the old and the new one.
ADMISSION_BYTES = 8 * 1024 * 1024
# API servers convert object by object, or short lists.
CONVERSION_BYTES = 16 * 1024 * 1024

_LARGE = 256 * 1024
_SMALL_AT_ONCE = 8
_SECONDS = 10.0  # API servers give up after 10s (admission) and 30s (conversion)
# A job has a value in 15 bytes, so this is more than a real body of the largest size has.
_MOST_VALUES = 1_500_000


class Refused(Exception):
    """A body that is not read or not decoded: the status of the answer, and why."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Bodies:
    """The bodies that are in memory at this moment."""

    def __init__(self, seconds: float = _SECONDS) -> None:
        self._seconds = seconds
        self._large = asyncio.Semaphore(1)
        self._small = asyncio.Semaphore(_SMALL_AT_ONCE)

    @asynccontextmanager
    async def read(self, request: web.Request, most: int) -> AsyncIterator[bytes]:
        """The body, when it has its turn until the block is left; Refused if it cannot be read."""
        length = request.content_length
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise Refused(415, "a body must not be compressed")
        if length is not None and length > most:
            raise Refused(413, f"a body must not have more than {most} bytes")
        if length is None or length > _LARGE:
            await self._turn(self._large)
            try:
                yield await self._all(request, most)
            finally:
                self._large.release()
        else:
            body = await self._all(request, most)
            async with self._small:
                yield body

    async def _turn(self, semaphore: asyncio.Semaphore) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                await semaphore.acquire()
        except TimeoutError:
            raise Refused(503, "too many large requests at a time") from None

    async def _all(self, request: web.Request, most: int) -> bytes:
        try:
            async with asyncio.timeout(self._seconds):
                body = await request.read()
        except TimeoutError:
            raise Refused(408, f"the body took longer than {self._seconds:g}s") from None
        except web.HTTPRequestEntityTooLarge:
            raise Refused(413, f"a body must not have more than {most} bytes") from None
        if len(body) > most:  # one without a length
            raise Refused(413, f"a body must not have more than {most} bytes")
        if sum(map(body.count, (b",", b"{", b"["))) > _MOST_VALUES:
            raise Refused(413, f"a body must not have more than {_MOST_VALUES} values")
        return body
