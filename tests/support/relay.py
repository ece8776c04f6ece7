"""A network cable to pull: a TCP relay that can be cut or go silent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


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
        """Keep the connections of now open and never pass on anything again, not even their end."""
        self._silenced |= self._writers

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        upstream = await asyncio.open_connection("127.0.0.1", self._target_port)
        self._writers |= {writer, upstream[1]}
        try:
            await asyncio.gather(
                self._pass_on(reader, upstream[1]), self._pass_on(upstream[0], writer)
            )
        finally:
            for each in (writer, upstream[1]):
                self._writers.discard(each)
                each.transport.abort()

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

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        with suppress(OSError, asyncio.CancelledError):
            await relay.serve(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
