"""A write that timed out must not happen later, when another replica may lead."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from devcluster.control_plane import ControlPlane
from devcluster.pki import Pki
from mpi_operator.kube import errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import CONFIG_MAPS, Resource
from tests.api.kube.test_informer_faults import behind_a_relay
from tests.contract.client import config_map
from tests.support.listener import listening
from tests.support.waiting import until

WEBHOOKS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
REIGN_SECONDS = 2.5  # less than a write of the client may take, so it is what counts
PROBE = "probe"


class Reign:
    """A fence that opens for a moment."""

    grace = 10.0

    doubts = 0

    def remaining(self) -> float:
        return REIGN_SECONDS

    def doubt(self) -> None:
        self.doubts += 1


async def test_a_write_held_up_in_the_server_is_not_stored_after_the_reign(
    fragile: ControlPlane, fragile_client: HttpClient
):
    """The server has the whole request when the network is cut: it cannot hear us hang up."""
    asked, answered, probed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slowly(request: web.Request) -> web.Response:
        review = await request.json()
        if review["request"]["object"]["metadata"]["name"] == PROBE:
            probed.set()
        else:
            asked.set()
            await asyncio.sleep(2 * REIGN_SECONDS)
            answered.set()
        verdict = {"uid": review["request"]["uid"], "allowed": True}
        return web.json_response({**review, "request": None, "response": verdict})

    async def is_called() -> bool:
        """The server calls a webhook a moment after it was stored."""
        await fragile_client.create(CONFIG_MAPS, config_map(PROBE, "default"))
        await fragile_client.delete(CONFIG_MAPS, PROBE, "default")
        return probed.is_set()

    async with (
        webhook(fragile, fragile_client, slowly),
        behind_a_relay(fragile) as (client, relay),
    ):
        await until(is_called)
        leader = client.fenced_by(reign := Reign())
        writing = asyncio.create_task(leader.create(CONFIG_MAPS, config_map("late", "default")))
        await asked.wait()
        relay.silence()
        with pytest.raises(errors.DeadlineExceeded):
            await writing
        assert reign.doubts == 1
        await answered.wait()
        for _ in range(20):
            await asyncio.sleep(0.1)
            with pytest.raises(errors.NotFound):
                await fragile_client.get(CONFIG_MAPS, "late", "default")


@asynccontextmanager
async def webhook(
    control_plane: ControlPlane,
    client: HttpClient,
    review: Callable[[web.Request], Awaitable[web.Response]],
) -> AsyncIterator[None]:
    """Have every new ConfigMap reviewed."""
    application = web.Application()
    application.router.add_post("/", review)
    keys = Pki(control_plane.directory / "pki").pair("serving")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(keys.certificate, keys.key)
    async with listening(application, context, shutdown_timeout=0.1) as port:
        url = f"https://127.0.0.1:{port}/"
        await client.create(WEBHOOKS, configuration(url, control_plane.ca.read_bytes()))
        try:
            yield
        finally:
            await client.delete(WEBHOOKS, "slow.example.com")


def configuration(url: str, authority: bytes) -> dict[str, object]:
    return {
        "metadata": {"name": "slow.example.com"},
        "webhooks": [
            {
                "name": "slow.example.com",
                "clientConfig": {"url": url, "caBundle": base64.b64encode(authority).decode()},
                "rules": [
                    {
                        "operations": ["CREATE"],
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "resources": ["configmaps"],
                    }
                ],
                "matchConditions": [
                    {"name": "late", "expression": "object.metadata.name in ['late', 'probe']"}
                ],
                "failurePolicy": "Ignore",
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
        ],
    }
