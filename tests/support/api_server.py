"""A web server on this machine that acts as the API server, answer by answer."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ssl import SSLContext
from typing import Any

import msgspec
from aiohttp import web

from mpi_operator.kube.config import TLS, Config, Credential, Credentials
from mpi_operator.kube.config.config import FixedCredentials
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.transport import Timeouts
from tests.support.listener import listening
from tests.unit.kube.config.pki import authority

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]

QUICK = Timeouts(connect=5, read=5, write=5, deadline=10, silence=5)


class ApiServer:
    """Gives each request the next answer, and repeats the last one."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.connections: set[Any] = set()
        self.url = ""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        assert isinstance(request, web.Request)
        self.requests.append(request)
        self.bodies.append(await request.read())
        self.connections.add(request.transport)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return await answer(request)

    @property
    def seen(self) -> list[str]:
        return [f"{request.method} {request.path_qs}" for request in self.requests]


@asynccontextmanager
async def serving(*answers: Answer, tls: SSLContext | None = None) -> AsyncIterator[ApiServer]:
    server = ApiServer(*answers)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    async with listening(app, tls, handler_cancellation=True, shutdown_timeout=0) as port:
        server.url = f"https://localhost:{port}" if tls else f"http://127.0.0.1:{port}"
        yield server


@asynccontextmanager
async def client_of(
    server: ApiServer | str,
    *,
    timeouts: Timeouts = QUICK,
    credentials: Credentials | None = None,
    tls: TLS | None = None,
    proxy: str | None = None,
    **options: Any,
) -> AsyncIterator[HttpClient]:
    config = Config(
        server=server if isinstance(server, str) else server.url,
        namespace="default",
        tls=tls or TLS(ca=authority().pem),
        credentials=credentials or FixedCredentials(Credential()),
        proxy=proxy,
    )
    async with HttpClient(config, timeouts=timeouts, **options) as client:
        yield client


def says(body: Any = None, code: int = 200, **headers: str) -> Answer:
    """An answer in JSON, or in bytes as they are."""
    content = body if isinstance(body, bytes) else msgspec.json.encode(body or {})

    async def answer(request: web.Request) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(body=content, status=code, headers=named)

    return answer


def streams(*chunks: bytes, then: Answer | None = None) -> Answer:
    """An answer in pieces; without `then` it ends as it should."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        if then is not None:
            await then(request)
        return response

    return answer


async def hangs(request: web.Request) -> web.StreamResponse:
    """No answer at all."""
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


async def cuts(request: web.Request) -> web.StreamResponse:
    """Abort the connection."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def closes(request: web.Request) -> web.StreamResponse:
    """Close the connection without an answer."""
    assert request.transport is not None
    request.transport.close()
    return web.Response()


async def breaks_off(request: web.Request) -> web.StreamResponse:
    """Half an answer."""
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"half": ')
    return await cuts(request)
