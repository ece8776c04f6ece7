"""One request over the wire: connections, TLS, credentials, time limits. Knows no retries.

aiohttp makes and keeps the connections and parses what comes. Calls are exchanged on those
connections here, because its session does much per request that an API server does not need
(cookies, redirects, forms, a task per body): a quarter of a call's CPU. Streams and proxies, whose
price per request matters to nobody, go through the session.

What aiohttp raises is sorted here by the one question that matters to a caller: can the request
have done something (`ConnectionLost`), or certainly not (`NotSent`)?
"""

import asyncio
import io
import math
import re
import socket
import ssl
import weakref
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from urllib.parse import urlencode, urlsplit

import aiohttp
from aiohttp.http import HttpProcessingError
from yarl import URL

from . import errors
from .config import ClientCertificate, Config, Credential
from .requests import Request

_LARGE = 2**20
_BUFFER = 2**18  # objects of a megabyte come in one line of a watch
# A new connection costs both ends milliseconds of CPU, so they are kept for the next burst of
# writes: not as long as load balancers (60 s) and API servers (90 s) keep those nobody uses.
_IDLE_SECONDS = 50.0
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f]")  # in a header: a line break would start another one

# What came back: code, headers, body.
Answer = tuple[int, Mapping[str, str], bytes]


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


@dataclass(frozen=True)
class _Papers:
    """What one credential means on the wire; made once for all requests that show it."""

    credential: Credential
    destination: aiohttp.ClientRequest  # tells aiohttp which connections will do
    headers: bytes


class Transport:
    """Kept-open connections to one API server. Use as a context manager, on one event loop."""

    def __init__(self, config: Config, timeouts: Timeouts, user_agent: str) -> None:
        self._config = config
        self._user_agent = user_agent
        self._timeouts = timeouts
        self._contexts: dict[ClientCertificate | None, ssl.SSLContext] = {}
        self._session: aiohttp.ClientSession | None = None
        self._papers: _Papers | None = None
        self._prefix = urlsplit(config.server).path
        # Of a connection alone: the whole exchange has a limit of its own.
        self._connecting = aiohttp.ClientTimeout(
            total=None, sock_connect=timeouts.connect, ceil_threshold=math.inf
        )
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    async def __aenter__(self) -> Self:
        self._papers = None  # those of another loop
        self._session = aiohttp.ClientSession(
            # The sender bounds calls; a bound here would count watches too.
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=_IDLE_SECONDS, socket_factory=self._socket
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=self._headers(),
            middlewares=(_no_hidden_second_try,),
            read_bufsize=_BUFFER,
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
        exchange = self._exchange if self._config.proxy is None else self._exchange_by_session
        try:
            code, headers, body = await exchange(request, credential, timeout)
        except (*_FAILURES, OSError) as error:
            raise _sorted(error, request, self._config.server) from _safe(error)
        if code >= 300:
            raise errors.from_response(code, body, headers)
        return code, body

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

    async def _exchange(self, request: Request, credential: Credential, timeout: float) -> Answer:
        session, papers = self._opened(), self._papers_of(credential)
        message = self._message(request, papers, timeout)
        async with asyncio.timeout(timeout):
            connection = await self._connection(session, papers)
            try:
                answer = await _answer(connection, message)
            except BaseException:
                # What has not left yet must not leave after we have given up.
                if connection.transport is not None:
                    connection.transport.abort()
                connection.close()
                raise
            connection.release()
            return answer

    async def _exchange_by_session(
        self, request: Request, credential: Credential, timeout: float
    ) -> Answer:
        """The same through a proxy: aiohttp's session knows tunnels, addresses and passwords."""
        limits = aiohttp.ClientTimeout(
            total=timeout,
            sock_connect=self._timeouts.connect,
            # aiohttp rounds long ones up to a whole second, and a fence has none to spare.
            ceil_threshold=math.inf,
        )
        async with self._open(request, credential, limits) as response:
            return response.status, response.headers, await response.read()

    async def _connection(
        self, session: aiohttp.ClientSession, papers: _Papers
    ) -> "aiohttp.connector.Connection":
        """One that is free and open, or a new one."""
        assert session.connector is not None
        try:
            return await session.connector.connect(papers.destination, [], self._connecting)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError("no connection in time") from error

    def _message(self, request: Request, papers: _Papers, timeout: float) -> bytes:
        """All bytes of a request: in one piece, they are one TLS record and one system call."""
        line = f"{request.method} {self._prefix}{_target(request, timeout)} HTTP/1.1"
        _check(line)
        if request.body is None:
            return b"%b\r\n%b\r\n" % (line.encode(), papers.headers)
        return b"%b\r\n%bContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b" % (
            line.encode(),
            papers.headers,
            request.content_type.encode(),
            len(request.body),
            request.body,
        )

    def _papers_of(self, credential: Credential) -> _Papers:
        papers = self._papers
        if papers is None or papers.credential != credential:
            destination = aiohttp.ClientRequest(
                "GET",
                URL(self._config.server),
                loop=asyncio.get_running_loop(),
                ssl=self._context(credential.certificate),
                server_hostname=self._config.tls.server_name,
            )
            host = ("Host", destination.headers["Host"])
            headers = _block([host, *self._headers().items(), *credential.headers])
            papers = self._papers = _Papers(credential, destination, headers)
        return papers

    def _headers(self) -> dict[str, str]:
        return {
            "Accept": "application/json",
            # Compressing costs both sides more than the bytes do, inside a data centre.
            "Accept-Encoding": "identity",
            "User-Agent": self._user_agent,
        }

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            raise RuntimeError("the transport is closed; use it inside 'async with'")
        return self._session

    def _open(
        self, request: Request, credential: Credential, limits: aiohttp.ClientTimeout
    ) -> "aiohttp.client._RequestContextManager":
        headers = list(credential.headers)
        if request.body is not None:
            headers.append(("Content-Type", request.content_type))
        return self._opened().request(
            request.method,
            URL(f"{self._config.server}{_target(request, limits.total)}", encoded=True),
            data=_payload(request.body),
            headers=headers,
            ssl=self._context(credential.certificate),
            server_hostname=self._config.tls.server_name,
            proxy=self._config.proxy,
            timeout=limits,
            # A redirect would carry our credentials to somebody else.
            allow_redirects=False,
        )

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


async def _answer(connection: "aiohttp.connector.Connection", message: bytes) -> Answer:
    """Say it and hear the whole answer."""
    protocol, transport = connection.protocol, connection.transport
    if protocol is None or transport is None or transport.is_closing():
        raise aiohttp.ClientConnectionResetError("the connection was closed")
    protocol.set_response_params(read_until_eof=True, read_bufsize=_BUFFER)
    transport.write(message)
    while True:
        head, body = await protocol.read()
        if head.code >= 200:
            return head.code, head.headers, await body.read()


def _target(request: Request, seconds: float | None) -> str:
    """The path and what is asked of it."""
    query = urlencode(request.query) if request.query else ""
    if not request.is_read:
        # The server has to stop as well: it may have the whole request, and a cut network then
        # keeps our hanging up from it. Nobody may be surprised by a write that was given up.
        query = f"{query}{'&' if query else ''}timeout={seconds:.3f}s"
    return f"{request.path}?{query}" if query else request.path


def _block(headers: Iterable[tuple[str, str]]) -> bytes:
    lines = [f"{name}: {value}" for name, value in headers]
    for line in lines:
        _check(line)
    return "".join(f"{line}\r\n" for line in lines).encode()


def _check(line: str) -> None:
    if _FORBIDDEN.search(line):
        raise ValueError("a header or an address holds a control character")


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


_FAILURES = (aiohttp.ClientError, HttpProcessingError, TimeoutError)


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
    # aiohttp's own sentence about a connection shows the address of a TLS object in memory.
    known = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    return f"{verb} {where}: {known or type(error).__name__}"
