"""Serves the cluster of a run at a socket in its directory, to other shells of the same user.

    async with serving(cluster, run.directory):
        ...

Only the owner can enter the directory (0700) and connect (0600), so every request is allowed.
`socket_messages` is the protocol.
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
    MAX_ANSWER,
    MAX_REQUEST,
    SOCKET,
    STREAMS,
    Answer,
    AnyRequest,
    decode_request,
    encode,
)

log = logging.getLogger(__name__)

# At the end: enough for the last lines of logs that have ended. Watches are cut off.
_DRAIN_SECONDS = 0.2


@asynccontextmanager
async def serving(client: Client, directory: Path) -> AsyncIterator[None]:
    """Serve requests within the block."""
    connections = _Connections(client)
    # Within the address: some Pythons remove the socket by it when they stop listening.
    with address(directory, SOCKET) as path:
        server = await asyncio.start_unix_server(connections.handle, path, limit=MAX_REQUEST)
        try:
            (directory / SOCKET).chmod(0o600)
            yield
        finally:
            server.close()
            (directory / SOCKET).unlink(missing_ok=True)
            await connections.close()


class _Connections:
    """The open connections."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._tasks: set[asyncio.Task[Any]] = set()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until its response or the connection ends."""
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        try:
            await asyncio.wait([task])
        finally:
            self._tasks.discard(task)
            writer.close()

    async def close(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_DRAIN_SECONDS)
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            try:
                request = await _read_request(reader)
            except errors.ApiError as error:
                await _write(writer, Answer(end=error.status))
                return
            if request is not None:
                await _while_connected(reader, self._respond(request, writer))

    async def _respond(self, request: AnyRequest, writer: asyncio.StreamWriter) -> None:
        end = Status()
        try:
            async with aclosing(_items(self._client, request)) as items:
                async for item in items:
                    await _write(writer, Answer(item=item))
        except errors.ApiError as error:
            end = error.status
        except ValueError as error:
            end = Status(str(error), "BadRequest", 400)
        except ConnectionError:
            raise  # the client is gone
        except Exception as error:
            log.exception("Request from another shell failed", extra={"verb": request.verb})
            end = Status(f"Internal error occurred: {error}", "InternalError", 500)
        await _write(writer, Answer(end=end))


async def _read_request(reader: asyncio.StreamReader) -> AnyRequest | None:
    """The request; None if the client disconnects without one."""
    try:
        line = await reader.readline()
    except ValueError as error:
        why = f"Request entity too large: limit is {MAX_REQUEST}"
        raise errors.TooLarge(Status(why, "RequestEntityTooLarge", 413)) from error
    if not line.endswith(b"\n"):
        return None
    try:
        request: AnyRequest = decode_request(line)
    except errors.MALFORMED as error:
        raise errors.BadRequest(Status(f"invalid request: {error}", "BadRequest", 400)) from error
    return request


async def _while_connected(
    reader: asyncio.StreamReader, response: Coroutine[Any, Any, None]
) -> None:
    """Respond until the client disconnects; it sends nothing after its request."""
    responding = asyncio.ensure_future(response)
    disconnected = asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait([responding, disconnected], return_when=asyncio.FIRST_COMPLETED)
        if responding.done():
            responding.result()
    finally:
        for task in (responding, disconnected):
            task.cancel()
        await asyncio.gather(responding, disconnected, return_exceptions=True)


async def _items(client: Client, request: AnyRequest) -> AsyncGenerator[Raw, None]:
    """The items of the response to a request."""
    answer = getattr(client, request.verb)(**request.arguments)
    if not isinstance(request, STREAMS):
        yield _encode_item(await answer)
        return
    async with aclosing(answer):
        async for item in answer:
            yield _encode_item(item)


def _encode_item(item: object) -> Raw:
    encoded = encode(item)
    if len(encoded) > MAX_ANSWER // 2:
        why = f"an item of {len(encoded)} bytes is too large"
        raise errors.TooLarge(Status(why, "RequestEntityTooLarge", 413))
    return Raw(encoded)


async def _write(writer: asyncio.StreamWriter, answer: Answer) -> None:
    writer.write(encode(answer) + b"\n")
    await writer.drain()
