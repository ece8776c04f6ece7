"""One request over the wire: connections, TLS, credentials, time limits. Knows no retries.

What aiohttp raises is sorted here by the one question that matters to a caller: can the request
have done something (`ConnectionLost`), or certainly not (`NotSent`)?
"""

import asyncio
import io
import math
import socket
import ssl
import weakref
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from . import errors
from .config import ClientCertificate, Config, Credential
from .requests import Request

_LARGE = 2**20


@dataclass(frozen=True)
class Timeouts:
    """How long to wait for what, in seconds."""

    connect: float = 5.0
    read: float = 15.0  # one try of a read; a hanging connection costs this much, not the deadline
    write: float = 40.0  # one try of a write: admission webhooks may take 30 s
    deadline: float = 60.0  # a call with all its retries
    silence: float = 100.0  # of a watch: bookmarks come every minute or so
    # Sent bytes that nobody acknowledges are given up after this time, by the kernel too. Less than
    # a lease minus its renew deadline: what a cut-off leader sent must not arrive after its reign.
    unacknowledged: float = 8.0


class Transport:
    """Kept-open connections to one API server. Use as a context manager, on one event loop."""

    def __init__(self, config: Config, timeouts: Timeouts, user_agent: str) -> None:
        self._config = config
        self._user_agent = user_agent
        self._timeouts = timeouts
        self._contexts: dict[ClientCertificate | None, ssl.SSLContext] = {}
        self._session: aiohttp.ClientSession | None = None
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            # The sender bounds calls; a bound here would count watches too.
            connector=aiohttp.TCPConnector(limit=0, socket_factory=self._socket),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={
                "Accept": "application/json",
                # Compressing costs both sides more than the bytes do, inside a data centre.
                "Accept-Encoding": "identity",
                "User-Agent": self._user_agent,
            },
            middlewares=(_no_hidden_second_try,),
            # Objects of a megabyte come in one line of a watch.
            read_bufsize=2**18,
        )
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()
            await self._close_sockets()

    async def send(
        self, request: Request, credential: Credential, timeout: float
    ) -> tuple[int, bytes]:
        """Code and body of a good answer; an ApiError for any other."""
        limits = aiohttp.ClientTimeout(
            total=timeout,
            sock_connect=self._timeouts.connect,
            # aiohttp rounds long ones up to a whole second, and a fence has none to spare.
            ceil_threshold=math.inf,
        )
        try:
            async with self._open(request, credential, limits) as response:
                body = await response.read()
        except _FAILURES as error:
            raise _sorted(error, request, self._config.server) from _safe(error)
        if response.status >= 300:
            raise errors.from_response(response.status, body, response.headers)
        return response.status, body

    @asynccontextmanager
    async def stream(
        self, request: Request, credential: Credential, opening: float, silence: float
    ) -> AsyncGenerator[tuple[int, aiohttp.StreamReader], None]:
        """Code and body of a good answer, as it comes: it must begin within `opening` seconds.

        After that, `silence` seconds without a byte are too many.
        """
        limits = aiohttp.ClientTimeout(
            total=None, sock_connect=self._timeouts.connect, sock_read=_finite(silence)
        )
        try:
            async with (
                asyncio.timeout(_finite(opening)) as beginning,
                self._open(request, credential, limits) as response,
            ):
                if response.status >= 300:
                    body = await response.read()
                    raise errors.from_response(response.status, body, response.headers)
                beginning.reschedule(None)
                yield response.status, response.content
        except _FAILURES as error:
            raise _sorted(error, request, self._config.server) from _safe(error)

    def _open(
        self, request: Request, credential: Credential, limits: aiohttp.ClientTimeout
    ) -> "aiohttp.client._RequestContextManager":
        if self._session is None:
            raise RuntimeError("the transport is closed; use it inside 'async with'")
        headers = list(credential.headers)
        if request.body is not None:
            headers.append(("Content-Type", request.content_type))
        return self._session.request(
            request.method,
            self._url(request, limits.total),
            data=_payload(request.body),
            headers=headers,
            ssl=self._context(credential.certificate),
            server_hostname=self._config.tls.server_name,
            proxy=self._config.proxy,
            timeout=limits,
            # A redirect would carry our credentials to somebody else.
            allow_redirects=False,
        )

    def _url(self, request: Request, seconds: float | None) -> URL:
        query = urlencode(request.query)
        if not request.is_read:
            # The server has to stop as well: it may have the whole request, and a cut network then
            # keeps our hanging up from it. Nobody may be surprised by a write that was given up.
            query = f"{query}{'&' if query else ''}timeout={seconds:.3f}s"
        url = f"{self._config.server}{request.path}"
        return URL(f"{url}?{query}" if query else url, encoded=True)

    def _context(self, certificate: ClientCertificate | None) -> ssl.SSLContext:
        # aiohttp keeps connections by context, so a renewed certificate gets new connections.
        context = self._contexts.get(certificate)
        if context is None:
            context = self._config.ssl_context(certificate)
            self._contexts = {certificate: context}
        return context

    async def _close_sockets(self) -> None:
        """End what is still saying goodbye: a hanging server gets half a minute for that."""
        for sock in self._sockets:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                while any(sock.fileno() >= 0 for sock in self._sockets):  # noqa: ASYNC110
                    await asyncio.sleep(0)

    def _socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, protocol, _, _ = address
        sock = socket.socket(family, kind, protocol)
        self._sockets.add(sock)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
            milliseconds = int(self._timeouts.unacknowledged * 1000)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
        return sock


async def _no_hidden_second_try(
    request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Keep aiohttp from sending PUT and DELETE again by itself when a kept connection breaks.

    The first one may have happened, and no fence was asked about the second.
    """
    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise errors.ConnectionLost(_sentence(request.method, str(request.url), error)) from error


def _finite(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) else None


def _payload(body: bytes | None) -> bytes | io.BytesIO | None:
    # aiohttp warns of large bytes, which it would hand to the socket in one piece.
    return io.BytesIO(body) if body is not None and len(body) > _LARGE else body


_FAILURES = (aiohttp.ClientError, TimeoutError)


def _sorted(error: Exception, request: Request, server: str) -> errors.KubeError:
    """One of aiohttp's failures as one of ours."""
    match error:
        case aiohttp.ClientSSLError():
            return errors.Untrusted(_sentence(request.verb, server, error))
        case aiohttp.ClientHttpProxyError():
            answer = f"the proxy answered {error.status} {error.message}"
            return errors.NotSent(f"{request.verb} {server}: {answer}")
        case aiohttp.ClientConnectorError() | aiohttp.ConnectionTimeoutError():
            return errors.NotSent(_sentence(request.verb, server, error))
        case TimeoutError():
            return errors.DeadlineExceeded(
                f"{request.verb} {server}{request.path}: no answer in time"
            )
    return errors.ConnectionLost(_sentence(request.verb, server + request.path, error))


def _safe(error: Exception) -> Exception | None:
    """The cause to show; not of a proxy's refusal, which quotes an address with a password."""
    return None if isinstance(error, aiohttp.ClientHttpProxyError) else error


def _sentence(verb: str, where: str, error: Exception) -> str:
    return f"{verb} {where}: {error or type(error).__name__}"
