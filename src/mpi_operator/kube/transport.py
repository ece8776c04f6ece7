"""One request over the wire: connections, TLS, credentials, time limits. No retries.

Calls use the connections of aiohttp without its session, which is cheaper (`aiohttp_adapter`).
Streams and requests through a proxy are few enough to use the session.

Errors of aiohttp become ours by the one question that matters to a caller: may the server have
acted on the request (`ConnectionLost`), or certainly not (`NotSent`)?
"""

import asyncio
import io
import math
import re
import socket
import ssl
import weakref
from collections.abc import AsyncGenerator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlencode, urlsplit

import aiohttp
from yarl import URL

from . import aiohttp_adapter, errors
from .aiohttp_adapter import FAILURES, Answer, Destination
from .config import ClientCertificate, Config, Credential
from .requests import Request

_LARGE = 2**20
_BUFFER = 2**18  # objects of a megabyte come in one line of a watch
# A new connection costs both ends milliseconds of CPU time, so keep them for the next burst of
# writes, but for less time than load balancers (60s) and API servers (90s) keep idle ones.
_IDLE_SECONDS = 50.0
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f]")  # in a header: a line break would start another one


@dataclass(frozen=True)
class Timeouts:
    """How long to wait for what, in seconds."""

    connect: float = 5.0
    read: float = 15.0  # one try of a read; a hanging connection costs this much, not the deadline
    write: float = 40.0  # one try of a write: admission webhooks may take 30s
    deadline: float = 60.0  # a call with all its retries
    silence: float = 100.0  # of a watch: bookmarks come every minute or so
    # The kernel drops sent bytes that the peer does not acknowledge within this time. Less than a
    # lease minus its renew deadline: writes of a cut-off leader must not arrive after its lease.
    unacknowledged: float = 8.0


@dataclass(frozen=True)
class _Identity:
    """A credential as sent over the wire; made once for all requests that use it."""

    credential: Credential
    destination: Destination
    headers: bytes


class Transport:
    """Persistent connections to one API server. A context manager, for one event loop."""

    def __init__(self, config: Config, timeouts: Timeouts, user_agent: str) -> None:
        self._config = config
        self._user_agent = user_agent
        self._timeouts = timeouts
        self._contexts: dict[ClientCertificate | None, ssl.SSLContext] = {}
        self._session: aiohttp.ClientSession | None = None
        self._identity: _Identity | None = None
        self._prefix = urlsplit(config.server).path
        # For the connection only: the whole exchange has its own limit.
        self._connecting = aiohttp.ClientTimeout(
            total=None, sock_connect=timeouts.connect, ceil_threshold=math.inf
        )
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    async def __aenter__(self) -> Self:
        self._identity = None  # it belongs to another loop
        self._session = aiohttp.ClientSession(
            # The sender limits calls; a limit here would count watches too.
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=_IDLE_SECONDS, socket_factory=self._socket
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=self._headers(),
            middlewares=(_no_hidden_retry,),
            read_bufsize=_BUFFER,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()
            await self._close_sockets()

    async def send(
        self, request: Request, credential: Credential, timeout: float
    ) -> tuple[int, bytes]:
        """Code and body of a successful answer; an ApiError for any other."""
        exchange = self._exchange if self._config.proxy is None else self._exchange_by_session
        try:
            code, headers, body = await exchange(request, credential, timeout)
        except (*FAILURES, OSError) as error:
            raise _translated(error, request, self._config.server) from _safe(error)
        if code >= 300:
            raise errors.from_response(code, body, headers)
        return code, body

    @asynccontextmanager
    async def stream(
        self, request: Request, credential: Credential, opening: float, silence: float
    ) -> AsyncGenerator[tuple[int, aiohttp.StreamReader], None]:
        """Code and body of a successful answer, which must begin within `opening` seconds.

        After that, `silence` seconds without a byte are an error.
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
        except FAILURES as error:
            raise _translated(error, request, self._config.server) from _safe(error)

    async def _exchange(self, request: Request, credential: Credential, timeout: float) -> Answer:
        session, identity = self._opened(), self._identity_of(credential)
        message = self._message(request, identity, timeout)
        async with asyncio.timeout(timeout):
            connection = await aiohttp_adapter.connect(
                session, identity.destination, self._connecting
            )
            try:
                answer = await aiohttp_adapter.exchange(connection, message, _BUFFER)
            except BaseException:
                aiohttp_adapter.abort(connection)
                raise
            connection.release()
            return answer

    async def _exchange_by_session(
        self, request: Request, credential: Credential, timeout: float
    ) -> Answer:
        """The same through a proxy, for which the session of aiohttp has tunnels and passwords."""
        limits = aiohttp.ClientTimeout(
            total=timeout,
            sock_connect=self._timeouts.connect,
            # Otherwise aiohttp rounds long limits up to a whole second, which a fence cannot spare.
            ceil_threshold=math.inf,
        )
        async with self._open(request, credential, limits) as response:
            return response.status, response.headers, await response.read()

    def _message(self, request: Request, identity: _Identity, timeout: float) -> bytes:
        """A whole request: as one piece it is one TLS record and one system call."""
        line = f"{request.method} {self._prefix}{_target(request, timeout)} HTTP/1.1"
        _check(line)
        if request.body is None:
            return b"%b\r\n%b\r\n" % (line.encode(), identity.headers)
        return b"%b\r\n%bContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b" % (
            line.encode(),
            identity.headers,
            request.content_type.encode(),
            len(request.body),
            request.body,
        )

    def _identity_of(self, credential: Credential) -> _Identity:
        identity = self._identity
        if identity is None or identity.credential != credential:
            destination = Destination(
                self._config.server,
                self._context(credential.certificate),
                self._config.tls.server_name,
            )
            host = ("Host", destination.host)
            headers = _block([host, *self._headers().items(), *credential.headers])
            identity = self._identity = _Identity(credential, destination, headers)
        return identity

    def _headers(self) -> dict[str, str]:
        return {
            "Accept": "application/json",
            # Within a data centre compression costs more than it saves.
            "Accept-Encoding": "identity",
            "User-Agent": self._user_agent,
        }

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            raise RuntimeError("the transport is closed; use it inside 'async with'")
        return self._session

    def _open(
        self, request: Request, credential: Credential, limits: aiohttp.ClientTimeout
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
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
            # A redirect would send our credentials to another server.
            allow_redirects=False,
        )

    def _context(self, certificate: ClientCertificate | None) -> ssl.SSLContext:
        # aiohttp keeps connections per context, so a renewed certificate gets new connections.
        context = self._contexts.get(certificate)
        if context is None:
            context = self._config.ssl_context(certificate)
            self._contexts = {certificate: context}
        return context

    async def _close_sockets(self) -> None:
        """Close sockets that still wait for the TLS shutdown, which takes 30s if a server hangs."""
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


def _target(request: Request, seconds: float | None) -> str:
    """The path and the query."""
    query = urlencode(request.query) if request.query else ""
    if not request.is_read:
        # The server must give up too: it may have the whole request, and never learn that we closed
        # the connection if the network is cut. A write must not happen after we gave up on it.
        query = f"{query}{'&' if query else ''}timeout={seconds:.3f}s"
    return f"{request.path}?{query}" if query else request.path


def _block(headers: Iterable[tuple[str, str]]) -> bytes:
    lines = [f"{name}: {value}" for name, value in headers]
    for line in lines:
        _check(line)
    return "".join(f"{line}\r\n" for line in lines).encode()


def _check(line: str) -> None:
    if _FORBIDDEN.search(line):
        raise ValueError("a header or an address contains a control character")


async def _no_hidden_retry(
    request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Keep aiohttp from resending PUT and DELETE on its own when an idle connection breaks.

    The first one may have happened, and the fence did not allow the second.
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
    # aiohttp warns about large bytes, which it would pass to the socket in one piece.
    return io.BytesIO(body) if body is not None and len(body) > _LARGE else body


def _translated(error: Exception, request: Request, server: str) -> errors.KubeError:
    """An error of aiohttp as one of ours."""
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
                f"{request.verb} {server}{request.path}: timed out waiting for the response"
            )
    return errors.ConnectionLost(_sentence(request.verb, server + request.path, error))


def _safe(error: Exception) -> Exception | None:
    """The error to chain, unless it is about a proxy: that quotes an address with a password."""
    return None if isinstance(error, aiohttp.ClientHttpProxyError) else error


def _sentence(verb: str, where: str, error: Exception) -> str:
    return f"{verb} {where}: {str(aiohttp_adapter.cause(error)) or type(error).__name__}"
