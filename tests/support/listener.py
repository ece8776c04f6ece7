"""A listening socket that leaves no connection behind when its server has ended.

A server that ends asks its clients to hang up, and over TLS it waits for them. Neither aiohttp nor
asyncio waits for that. When the client is another process on a busy machine, the event loop of the
test ends first, and garbage collection finds the open socket in a later test, which fails for it.
"""

import asyncio
import socket
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from ssl import SSLContext
from typing import Any

from aiohttp import web

_SECONDS_TO_CLOSE = 5.0


class Listener(socket.socket):
    """Listens on a free port of this machine, and knows the connections that it accepted."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        super().__init__(socket.AF_INET, socket.SOCK_STREAM)
        self._accepted: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self.bind((address, 0))
        self.port: int = self.getsockname()[1]

    def accept(self) -> tuple[socket.socket, Any]:
        accepted, address = super().accept()
        self._accepted.add(accepted)
        return accepted, address

    async def end_connections(self) -> None:
        """Break the connections that are open, and wait until their transports have noticed it."""
        for accepted in self._accepted:
            with suppress(OSError):
                accepted.shutdown(socket.SHUT_RDWR)
        async with asyncio.timeout(_SECONDS_TO_CLOSE):
            while any(accepted.fileno() >= 0 for accepted in self._accepted):
                await asyncio.sleep(0)


@asynccontextmanager
async def listening(
    app: web.Application, tls: SSLContext | None, *, address: str = "127.0.0.1", **options: Any
) -> AsyncIterator[int]:
    """Serve an application until the block ends; its port."""
    listener = Listener(address)
    runner = web.AppRunner(app, **options)
    await runner.setup()
    await web.SockSite(runner, listener, ssl_context=tls).start()
    try:
        yield listener.port
    finally:
        await runner.cleanup()
        await listener.end_connections()
