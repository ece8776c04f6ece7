"""Certificates and authorities change under load, and no call fails."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from devcluster.control_plane import ControlPlane
from devcluster.ports import free_port
from mpi_operator.kube import errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, SECRETS
from mpi_operator.webhook.rotation import Times
from tests.support.mpijobs import mpijob
from tests.support.waiting import until
from tests.support.webhook_replica import MUTATING, V1, VALIDATING, Replica, configuration, crd

# Long enough for a busy machine, short enough to see two authorities take over.
QUICK = Times(authority=40, serving=12, trust_delay=3, reread=0.3)
TAKEOVERS = 2


@pytest.fixture
async def replicas(
    admin: HttpClient, webhook_plane: ControlPlane, home: str
) -> AsyncIterator[list[Replica]]:
    """Two replicas with one Secret: one converts, the other one decides about admission."""
    kubeconfig = webhook_plane.kubeconfig()
    both = [Replica(kubeconfig, home, free_port(), QUICK) for _ in range(2)]
    async with AsyncExitStack() as stack:
        for each in both:
            await stack.enter_async_context(each.running())
        await admin.create(CUSTOM_RESOURCE_DEFINITIONS, crd(both[0].url))
        for resource in (VALIDATING, MUTATING):
            await admin.create(resource, configuration(resource, both[1].url))
        yield both


class Load:
    """Writes and reads v1 jobs all the time."""

    def __init__(self, client: HttpClient, namespace: str) -> None:
        self.calls: Counter[str] = Counter()
        self.failures: list[str] = []
        self._client = client
        self._namespace = namespace

    async def is_served(self) -> bool:
        """Whether a first job can be written: the bundles are there."""
        try:
            await self._client.create(V1, self._job("first"))
        except errors.AlreadyExists:
            return True
        except errors.ApiError:
            return False
        return True

    async def run(self, number: int) -> None:
        for count in range(1_000_000):
            name = f"job-{number}-{count}"
            await self._call("create", self._client.create(V1, self._job(name)))
            await self._call("get", self._client.get(V1, "first", self._namespace))
            await self._call("delete", self._client.delete(V1, name, self._namespace))

    async def _call(self, verb, call):
        self.calls[verb] += 1
        try:
            await call
        except errors.KubeError as error:
            self.failures.append(f"{verb}: {error}")

    def _job(self, name: str):
        return mpijob(name, self._namespace) | {"apiVersion": "kubeflow.org/v1"}


async def test_no_call_fails_while_authorities_and_certificates_change(admin, home, replicas):
    load = Load(admin, home)
    await until(load.is_served)
    seen: dict[str, set[str]] = {"ca.crt": set(), "tls.crt": set()}

    async def has_rotated() -> bool:
        data = (await admin.get(SECRETS, "mpi-operator-webhook", home))["data"]
        for name, known in seen.items():
            known.add(data[name])
        assert load.failures == []
        return len(seen["ca.crt"]) > TAKEOVERS

    tasks = [asyncio.create_task(load.run(number)) for number in range(3)]
    try:
        await until(has_rotated, 120)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    assert load.failures == []
    assert len(seen["tls.crt"]) > TAKEOVERS + 1, "certificates were renewed in between as well"
    assert min(load.calls.values()) > 20
