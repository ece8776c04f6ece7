"""The first moments of a replica: calls that arrive before it knows the certificate of all."""

import asyncio
from contextlib import asynccontextmanager

import aiohttp
import pytest

from mpi_operator.kube.resources import SECRETS, Key
from mpi_operator.local.apiserver.cluster import LocalCluster
from mpi_operator.webhook import server
from mpi_operator.webhook.certificate_keeper import CertificateKeeper, Wanted
from mpi_operator.webhook.certificate_secret import read_state
from mpi_operator.webhook.metrics import WebhookMetrics
from mpi_operator.webhook.rotation import Times
from mpi_operator.webhook.server import Decisions
from mpi_operator.webhook.tls import LiveContext
from mpi_operator.webhook.webhook import Settings, webhook
from tests.support.faulty_client import refused
from tests.support.tls_client import call
from tests.support.waiting import until

KEY = Key("home", "mpi-operator-webhook")
TIMES = Times(reread=0.05)


class SlowCluster(LocalCluster):
    """A cluster that answers a request for a Secret when the test allows it."""

    def __init__(self):
        super().__init__()
        self.may_answer = asyncio.Event()
        self.error = None

    async def get(self, resource, name, namespace="", *, subresource=""):
        if resource is SECRETS:
            await self.may_answer.wait()
            if self.error:
                raise self.error
        return await super().get(resource, name, namespace, subresource=subresource)


@pytest.fixture
async def cluster():
    """A cluster in which another replica has created the Secret."""
    cluster = SlowCluster()
    cluster.may_answer.set()
    wanted = Wanted(KEY, ("localhost",), TIMES)
    await CertificateKeeper(wanted, LiveContext(), WebhookMetrics()).refresh(cluster, None)
    cluster.may_answer.clear()
    return cluster


@asynccontextmanager
async def replica(cluster):
    settings = Settings(
        port=0, host="127.0.0.1", secret=KEY, service=KEY, names=("localhost",), times=TIMES
    )

    @asynccontextmanager
    async def connect():
        yield cluster

    decisions = Decisions(None, None, None)  # type: ignore[arg-type]
    async with webhook(settings, connect, decisions, WebhookMetrics()) as port:
        yield port


async def authorities(cluster):
    """What an API server trusts."""
    stored = await LocalCluster.get(cluster, SECRETS, KEY.name, KEY.namespace)
    return read_state(stored).authorities


async def test_a_call_waits_until_the_secret_is_read_and_is_answered(cluster, monkeypatch):
    monkeypatch.setattr(server, "_CERTIFICATE_SECONDS", 60.0)  # the machine may be busy
    async with replica(cluster) as port:
        calling = asyncio.create_task(
            call(port, "/healthz", authorities=await authorities(cluster))
        )
        done, _ = await asyncio.wait({calling}, timeout=0.2)
        assert not done, "it neither failed nor was answered yet"
        cluster.may_answer.set()
        assert (await calling)[0] == 200


async def test_calls_fail_at_once_if_the_secret_cannot_be_read_for_long(cluster, monkeypatch):
    monkeypatch.setattr(server, "_CERTIFICATE_SECONDS", 0.05)
    cluster.error = refused(403, "secrets is forbidden")
    cluster.may_answer.set()
    trusted = await authorities(cluster)
    async with replica(cluster) as port:
        with pytest.raises(aiohttp.ClientConnectorError):
            await call(port, "/healthz", authorities=trusted)
        cluster.error = None
        await until(lambda: is_answered(port, trusted))


async def is_answered(port, trusted):
    try:
        return (await call(port, "/healthz", authorities=trusted))[0] == 200
    except aiohttp.ClientConnectorError:
        return False
