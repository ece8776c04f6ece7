"""The HTTP endpoints /convert, /validate, /mutate and /healthz.

A request that is not a review gets 400. A bug while deciding about admission gets 500, so that the
failurePolicy of the webhook applies. Nothing logs the body of a request: jobs contain secrets.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TypeAlias

import msgspec
from aiohttp import web

from mpi_operator.api.conversion.shallow import shallow
from mpi_operator.kube.errors import MALFORMED
from mpi_operator.kube.json_depth import decoded
from mpi_operator.kube.resources import Manifest

from . import admission_response, conversion_review
from .admission_response import Admission
from .connections import Limits, Opened, arrivals
from .conversion_review import Convert, Failed, Malformed, where
from .listener import Listener, listening
from .metrics import WebhookMetrics
from .request_body import ADMISSION_BYTES, CONVERSION_BYTES, Bodies, Refused
from .tls import LiveContext

logger = logging.getLogger(__name__)

Decide: TypeAlias = Callable[[Manifest], Admission]
# The body of an answer, and what to count it as.
Answer: TypeAlias = tuple[Manifest, str]
Respond: TypeAlias = Callable[[bytes], Awaitable[web.Response]]
Handler: TypeAlias = Callable[[web.Request], Awaitable[web.Response]]

_SHUTDOWN_SECONDS = 3.0
# API servers give up on a handshake after 10s. If the certificate takes longer than this, it is
# better to fail their calls at once.
_CERTIFICATE_SECONDS = 5.0

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Decisions:
    """The pure functions behind the endpoints."""

    convert: Convert
    validate: Decide
    mutate: Decide


def application(
    decisions: Decisions, metrics: WebhookMetrics, bodies: Bodies | None = None
) -> web.Application:
    """The four endpoints."""
    reader = bodies or Bodies()

    async def convert(body: bytes) -> Answer:
        return await _convert(body, decisions.convert, metrics)

    async def validate(body: bytes) -> Answer:
        return _decide(body, decisions.validate)

    async def mutate(body: bytes) -> Answer:
        return _decide(body, decisions.mutate)

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    endpoints = (
        ("convert", convert, CONVERSION_BYTES),
        ("validate", validate, ADMISSION_BYTES),
        ("mutate", mutate, ADMISSION_BYTES),
    )
    app = web.Application(client_max_size=CONVERSION_BYTES, middlewares=[arrivals])
    app.router.add_get("/healthz", healthz)
    for endpoint, handle, most in endpoints:
        respond = _limited(_measured(endpoint, handle, metrics), reader, most)
        app.router.add_post(f"/{endpoint}", respond)
    return app


def _limited(respond: Respond, bodies: Bodies, most: int) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        try:
            async with bodies.read(request, most) as body:
                return await respond(body)
        except Refused as error:
            response = web.Response(text=f"{error}\n", status=error.status)
            response.force_close()  # the rest of the body may never come
            return response

    return handle


def _measured(
    endpoint: str, handle: Callable[[bytes], Awaitable[Answer]], metrics: WebhookMetrics
) -> Respond:
    async def respond(body: bytes) -> web.Response:
        started = time.perf_counter()
        response, outcome = await _response(endpoint, handle, body)
        metrics.answered(endpoint, outcome, time.perf_counter() - started)
        return response

    return respond


async def _response(
    endpoint: str, handle: Callable[[bytes], Awaitable[Answer]], body: bytes
) -> tuple[web.Response, str]:
    try:
        answer, outcome = await handle(body)
        return web.Response(body=_encoded(answer), content_type="application/json"), outcome
    except Malformed as error:
        return web.Response(text=f"{error}\n", status=400), "malformed"
    except Exception as error:
        facts = {"endpoint": endpoint, "error": type(error).__name__, "where": where(error)}
        logger.error("Request failed because of a bug", extra=facts)
        return web.Response(text="a bug in the webhook of mpi-operator\n", status=500), "error"


def _encoded(answer: Manifest) -> bytes:
    try:
        return _encode(answer)
    except RecursionError:  # a job can become deeper in another version
        return _encode(shallow(answer))


async def _convert(body: bytes, convert: Convert, metrics: WebhookMetrics) -> Answer:
    request = conversion_review.decode(body)
    try:
        objects = await conversion_review.converted(request, convert)
    except Failed as error:
        return conversion_review.failure(request.uid, str(error)), "failed"
    if objects:  # else the version is not known to exist
        metrics.converted(request.desired.rpartition("/")[2], len(objects))
    return conversion_review.success(request.uid, objects), "success"


class _AdmissionReview(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: Manifest


_decode_admission = msgspec.json.Decoder(_AdmissionReview).decode


def _decide(body: bytes, decide: Decide) -> Answer:
    try:
        review = decoded(_decode_admission, body)
    except MALFORMED as error:
        raise Malformed(f"not an AdmissionReview: {error}") from None
    uid = review.request.get("uid")
    if review.api_version != admission_response.API_VERSION or not isinstance(uid, str):
        raise Malformed(f"expected an AdmissionReview of {admission_response.API_VERSION}")
    admission = decide(review.request)
    outcome = "allowed" if admission.allowed else "denied"
    return admission_response.review(uid, admission), outcome


@asynccontextmanager
async def served(
    app: web.Application,
    live: LiveContext,
    port: int,
    host: str | None = None,
    limits: Limits | None = None,
) -> AsyncIterator[int]:
    """Serve over TLS, by default on every address; yields the port.

    It listens at once, but connections wait until there is a certificate: a call that arrives
    while the operator starts takes a moment longer instead of failing.

    CannotListen if the port is in use.
    """
    socket = listening(host, port)
    runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=_SHUTDOWN_SECONDS)
    await runner.setup()
    assert runner.server is not None
    opened = Opened(runner.server, limits or Limits())
    listener = Listener(socket, live.context, opened.new_connection, opened.has_room)
    bound: int = socket.getsockname()[1]
    logger.info("Serving webhooks", extra={"port": bound})
    starting = asyncio.create_task(_start(listener, live))
    try:
        yield bound
    finally:
        starting.cancel()
        await asyncio.wait([starting])
        await listener.close()
        await runner.cleanup()  # answers what is being asked
        await opened.close()


async def _start(listener: Listener, live: LiveContext) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(live.has_certificate.wait(), _CERTIFICATE_SECONDS)
    listener.start()
