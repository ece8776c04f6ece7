"""A cluster for the other shells of its owner, at a socket in the directory of the run.

    async with serving(cluster, run.directory):
        ...

Who may enter the directory (0700) and write to the socket (0600) may do everything: that is the
owner, who could just as well end the process. What is spoken there is in `requests`.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import Raw

from mpi_operator.kube import errors
from mpi_operator.kube.client import Client
from mpi_operator.kube.errors import Status
from mpi_operator.local.socket_address import address

from .socket_messages import (
    LONGEST_ANSWER,
    LONGEST_REQUEST,
    SOCKET,
    STREAMS,
    Answer,
    AnyRequest,
    decode_request,
    encode,
)

log = logging.getLogger(__name__)

# For the last lines of logs that have ended; who watches is not waited for any longer.
_LAST_WORDS_SECONDS = 0.2


@asynccontextmanager
async def serving(client: Client, directory: Path) -> AsyncIterator[None]:
    """Answer at the socket for as long as the block lasts."""
    door = _Door(client)
    # Within the address: some Pythons remove the socket by it when they stop listening.
    with address(directory, SOCKET) as place:
        server = await asyncio.start_unix_server(door.answer, place, limit=LONGEST_REQUEST)
        try:
            (directory / SOCKET).chmod(0o600)
            yield
        finally:
            server.close()
            (directory / SOCKET).unlink(missing_ok=True)
            await door.close()


class _Door:
    """Those who are being answered."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._callers: set[asyncio.Task[Any]] = set()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one caller, and no longer than they listen."""
        answering = asyncio.ensure_future(self._answer(reader, writer))
        self._callers.add(answering)
        try:
            await asyncio.wait([answering])
        finally:
            self._callers.discard(answering)
            writer.close()

    async def close(self) -> None:
        if self._callers:
            await asyncio.wait(self._callers, timeout=_LAST_WORDS_SECONDS)
        for caller in tuple(self._callers):
            caller.cancel()
        await asyncio.gather(*self._callers, return_exceptions=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            try:
                request = await _request(reader)
            except errors.ApiError as error:
                await _say(writer, Answer(end=error.status))
                return
            if request is not None:
                await _unless_gone(reader, self._tell(request, writer))

    async def _tell(self, request: AnyRequest, writer: asyncio.StreamWriter) -> None:
        end = Status()
        try:
            async with aclosing(_items(self._client, request)) as items:
                async for item in items:
                    await _say(writer, Answer(item=item))
        except errors.ApiError as error:
            end = error.status
        except ValueError as error:
            end = Status(str(error), "BadRequest", 400)
        except ConnectionError:
            raise  # there is nobody to tell it to
        except Exception as error:
            log.exception("a request of another shell failed", extra={"verb": request.verb})
            end = Status(f"Internal error occurred: {error}", "InternalError", 500)
        await _say(writer, Answer(end=end))


async def _request(reader: asyncio.StreamReader) -> AnyRequest | None:
    """What is asked for; None where somebody only knocked."""
    try:
        line = await reader.readline()
    except ValueError as error:
        why = f"a request has {LONGEST_REQUEST} bytes at most"
        raise errors.TooLarge(Status(why, "RequestEntityTooLarge", 413)) from error
    if not line.endswith(b"\n"):
        return None
    try:
        request: AnyRequest = decode_request(line)
    except errors.MALFORMED as error:
        raise errors.BadRequest(Status(f"not a request: {error}", "BadRequest", 400)) from error
    return request


async def _unless_gone(reader: asyncio.StreamReader, telling: Coroutine[Any, Any, None]) -> None:
    """Do it, but only while the caller is there. After a request a caller says nothing more."""
    told = asyncio.ensure_future(telling)
    gone = asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait([told, gone], return_when=asyncio.FIRST_COMPLETED)
        if told.done():
            told.result()
    finally:
        for task in (told, gone):
            task.cancel()
        await asyncio.gather(told, gone, return_exceptions=True)


async def _items(client: Client, request: AnyRequest) -> AsyncGenerator[Raw, None]:
    """What the cluster says to a request."""
    answer = getattr(client, request.verb)(**request.arguments)
    if not isinstance(request, STREAMS):
        yield _line(await answer)
        return
    async with aclosing(answer):
        async for item in answer:
            yield _line(item)


def _line(item: object) -> Raw:
    line = encode(item)
    if len(line) > LONGEST_ANSWER // 2:
        why = f"an answer of {len(line)} bytes is too long"
        raise errors.TooLarge(Status(why, "RequestEntityTooLarge", 413))
    return Raw(line)


async def _say(writer: asyncio.StreamWriter, answer: Answer) -> None:
    writer.write(encode(answer) + b"\n")
    await writer.drain()
