"""The HTTP endpoints /healthz, /readyz and /metrics, the same on every port."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from .exit_codes import Exit, ExitCode

logger = logging.getLogger(__name__)


class Probed(Protocol):
    """What the probes ask."""

    def liveness_problems(self) -> list[str]: ...

    def readiness_problems(self) -> list[str]: ...


def application(health: Probed, registry: CollectorRegistry) -> web.Application:
    """The three endpoints."""

    async def healthz(_: web.Request) -> web.Response:
        return _probe_response(health.liveness_problems())

    async def readyz(_: web.Request) -> web.Response:
        return _probe_response(health.readiness_problems())

    async def metrics(request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(registry), headers={"Content-Type": content_type})

    app = web.Application()
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", metrics)
    return app


def _probe_response(problems: Sequence[str]) -> web.Response:
    text = "".join(f"{each}\n" for each in problems)
    return web.Response(text=text or "ok\n", status=503 if problems else 200)


@asynccontextmanager
async def served(
    app: web.Application, ports: Sequence[int], host: str | None = None
) -> AsyncIterator[list[int]]:
    """Serve on each port, by default on every address; yields the ports in use."""
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    try:
        for port in dict.fromkeys(ports):
            await _listen(runner, host, port)
        bound = sorted({address[1] for address in runner.addresses})
        logger.info("Serving /healthz, /readyz and /metrics", extra={"ports": bound})
        yield bound
    finally:
        await runner.cleanup()


async def _listen(runner: web.AppRunner, host: str | None, port: int) -> None:
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        raise Exit(
            ExitCode.PORT_IN_USE, "Cannot listen on a port", port=port, error=str(error)
        ) from error
