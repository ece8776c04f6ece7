"""The connections of the server: how many there may be, and how long one may take to ask.

aiohttp closes connections that are idle, but has no limit for a request that never ends, and logs a
traceback for each one that is not HTTP.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from aiohttp import web

from mpi_operator.kube.aiohttp_adapter import NotHttp

from .conversion_review import where

logger = logging.getLogger(__name__)

Transports: TypeAlias = set[asyncio.Transport]

# Longer than an API server keeps an idle connection (90s): if we closed it first, a request that is
# on its way would be lost.
_KEEPALIVE_SECONDS = 180.0
_LINGERING_SECONDS = 2.0  # for the rest of a body that was refused
# API servers send a handful of short headers.
_HEADER_BYTES = 4096


@dataclass(frozen=True)
class Limits:
    """How much clients may use."""

    connections: int = 1000
    """API servers open one for each request that is under way: at most some hundreds."""
    head_seconds: float = 10.0
    """For a request until its body."""


class Connection(web.RequestHandler):
    """A connection that is closed if the head of a request does not arrive in time."""

    __slots__ = ("_deadline", "_head_seconds", "_is_handling", "_opened")

    def __init__(self, server: web.Server, head_seconds: float, opened: Transports) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]
            keepalive_timeout=_KEEPALIVE_SECONDS,
            lingering_time=_LINGERING_SECONDS,
            auto_decompress=False,
            max_field_size=_HEADER_BYTES,
            max_line_size=_HEADER_BYTES,
        )
        self._head_seconds = head_seconds
        self._opened = opened
        self._deadline: asyncio.TimerHandle | None = None
        self._is_handling = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._opened.add(transport)
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if not self._is_handling and self._deadline is None:
            loop = asyncio.get_running_loop()
            self._deadline = loop.call_later(self._head_seconds, self.force_close)
        super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        self.handling(True)
        if isinstance(self.transport, asyncio.Transport):
            self._opened.discard(self.transport)
        super().connection_lost(exc)

    def handling(self, is_handling: bool) -> None:
        """Tell that a request has arrived, or was answered."""
        self._is_handling = is_handling
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Log in one line, and hardly at all what is not HTTP: every pod can send it."""
        error = kw.get("exc_info")
        if isinstance(error, NotHttp):
            logger.debug("Request is not HTTP", extra={"error": type(error).__name__})
        elif isinstance(error, BaseException):
            facts = {"error": type(error).__name__, "where": where(error)}
            logger.error("Connection failed because of a bug", extra=facts)


class Opened:
    """The connections that are open."""

    def __init__(self, server: web.Server, limits: Limits) -> None:
        self._server = server
        self._limits = limits
        self._transports: Transports = set()

    def has_room(self, handshakes: int) -> bool:
        """Whether there may be one more connection, beside those in their handshake."""
        return len(self._transports) + handshakes < self._limits.connections

    def new_connection(self) -> Connection:
        return Connection(self._server, self._limits.head_seconds, self._transports)

    async def close(self) -> None:
        """Close every connection."""
        for transport in [*self._transports]:
            transport.abort()  # closing it would wait for the other side's goodbye
        await asyncio.sleep(0)


@web.middleware
async def arrivals(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Tells a connection that its request has arrived, and when it was answered."""
    connection = request.protocol
    if not isinstance(connection, Connection):
        return await handler(request)
    connection.handling(True)
    try:
        return await handler(request)
    finally:
        connection.handling(False)
