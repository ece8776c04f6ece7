"""A TCP relay that can be cut or go silent, as a network does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tests.support.listener import Listener


class Relay:
    """Passes connections on to a port of this machine."""

    def __init__(self, target_port: int) -> None:
        self.port = 0
        self._target_port = target_port
        self._is_cut = False
        self._silenced: set[asyncio.StreamWriter] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """Break every connection and take no new ones."""
        self._is_cut = True
        for writer in self._writers:
            writer.transport.abort()

    def mend(self) -> None:
        """Take connections again."""
        self._is_cut = False

    def silence(self) -> None:
        """Keep the present connections open, and pass on nothing more, not even their end."""
        self._silenced |= self._writers

    def accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> "asyncio.Task[None]":
        self._writers.add(writer)  # here: a task that is cancelled before it starts closes nothing
        return asyncio.create_task(self._serve(reader, writer))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if not self._is_cut:
                await self._connect(reader, writer)
        finally:
            self._end(writer)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, upstream = await asyncio.open_connection("127.0.0.1", self._target_port)
        self._writers.add(upstream)
        try:
            await asyncio.gather(self._pass_on(reader, upstream), self._pass_on(answers, writer))
        finally:
            self._end(upstream)

    def _end(self, writer: asyncio.StreamWriter) -> None:
        self._writers.discard(writer)
        writer.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(2**16):
                if writer in self._silenced:
                    await asyncio.Future()
                writer.write(data)
                await writer.drain()
        if writer in self._silenced:
            await asyncio.Future()
        writer.close()


@asynccontextmanager
async def relay_to(port: int) -> AsyncIterator[Relay]:
    """A relay in front of a port, until the block ends."""
    relay = Relay(port)
    tasks: set[asyncio.Task[None]] = set()

    def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(relay.accept(reader, writer))

    listener = Listener()
    relay.port = listener.port
    server = await asyncio.start_server(serve, sock=listener)
    try:
        yield relay
    finally:
        server.close()
        relay.cut()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await listener.end_connections()
        await asyncio.sleep(0)  # asyncio closes the sockets of aborted transports one turn later
