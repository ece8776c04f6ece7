"""A proxy in front of an API server, which sees every request of an operator and may change it.

It speaks TLS with a certificate that the cluster's own authority signed, so that an operator cannot
distinguish it from the server.
"""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Protocol

import aiohttp
import yaml
from aiohttp import web

from devcluster.control_plane import ControlPlane
from devcluster.pki import Pki
from tests.support.listener import listening

_WRITES = ("POST", "PUT", "PATCH", "DELETE")
_NOT_COUNTED = ("leases", "events")
# What concerns one connection and not the message.
_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}

Forward = Callable[[], Awaitable[web.StreamResponse]]


class Interceptor(Protocol):
    """Decides what happens to a write of the operator."""

    async def write(self, request: web.Request, forward: Forward) -> web.StreamResponse: ...


class ApiProxy:
    """Forwards requests. Writes about jobs go to an interceptor."""

    def __init__(
        self, server: str, session: aiohttp.ClientSession, interceptor: Interceptor
    ) -> None:
        self._server = server
        self._session = session
        self._interceptor = interceptor

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("watch"):
            return await self._stream(request)
        body = await request.read()

        async def forward() -> web.StreamResponse:
            return await self._forward(request, body)

        if is_counted(request):
            return await self._interceptor.write(request, forward)
        return await forward()

    async def _forward(self, request: web.Request, body: bytes) -> web.StreamResponse:
        async with self._open(request, body) as answer:
            return web.Response(
                body=await answer.read(), status=answer.status, headers=_passed_on(answer.headers)
            )

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        async with self._open(request, b"") as answer:
            response = web.StreamResponse(status=answer.status, headers=_passed_on(answer.headers))
            await response.prepare(request)
            with suppress(ConnectionError):
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
            return response

    @asynccontextmanager
    async def _open(
        self, request: web.Request, body: bytes
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        async with self._session.request(
            request.method,
            f"{self._server}{request.raw_path}",
            data=body or None,
            headers=_passed_on(request.headers),
            timeout=aiohttp.ClientTimeout(total=None),
        ) as answer:
            try:
                yield answer
            finally:
                # Closing TLS gracefully can take 30s. The test ends before that.
                if answer.connection and answer.connection.transport:
                    answer.connection.transport.abort()


def is_counted(request: web.Request) -> bool:
    """Whether a request writes a job or one of its objects; leases and events do not count."""
    parts = request.path.split("/")
    return request.method in _WRITES and not any(name in parts for name in _NOT_COUNTED)


def _passed_on(headers: "aiohttp.typedefs.LooseHeaders") -> dict[str, str]:
    return {name: value for name, value in dict(headers).items() if name.lower() not in _HOP}


@asynccontextmanager
async def api_proxy(
    control_plane: ControlPlane, directory: Path, interceptor: Interceptor
) -> AsyncIterator[Path]:
    """Run a proxy for a control plane; the admin's kubeconfig with the address of the proxy."""
    authority = Pki(control_plane.directory / "pki").authority
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    files = authority.issue_server(directory / "proxy", ("localhost", "127.0.0.1"))
    served.load_cert_chain(files.certificate, files.key)
    trusted = ssl.create_default_context(cafile=str(control_plane.ca))
    connector = aiohttp.TCPConnector(limit=0, ssl=trusted)
    async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:
        between = ApiProxy(control_plane.url, session, interceptor)
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{path:.*}", between.handle)
        async with listening(app, served, handler_cancellation=True, shutdown_timeout=0) as port:
            yield _kubeconfig(control_plane, port, directory)


def _kubeconfig(control_plane: ControlPlane, port: int, directory: Path) -> Path:
    content = yaml.safe_load(control_plane.kubeconfig().read_text())
    content["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    path = directory / "proxy.kubeconfig"
    path.write_text(yaml.safe_dump(content))
    path.chmod(0o600)
    return path
