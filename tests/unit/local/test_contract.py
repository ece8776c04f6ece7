"""The cluster in memory keeps the promises of every client."""

import itertools
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from mpi_operator.kube.resources import PODS, Resource
from mpi_operator.local.cluster import LocalCluster
from mpi_operator.local.kinds import Kind, Scale
from tests.contract.client import ClientContract, Talker
from tests.support.widgets import WIDGETS


class TestLocalCluster(ClientContract):
    @pytest.fixture
    def client(self) -> LocalCluster:
        scale = Scale(".spec.replicas", ".status.replicas")
        return LocalCluster([Kind(WIDGETS, has_status=True, scale=scale)])

    @pytest.fixture
    def namespace(self) -> str:
        return "here"

    @pytest.fixture
    def widgets(self) -> Resource:
        return WIDGETS

    @pytest.fixture
    def talker(self, client: LocalCluster) -> Talker:
        printed: dict[str, bytes] = {}
        names = (f"talker-{number}" for number in itertools.count())

        async def logs(name: str, namespace: str, **_: Any) -> AsyncGenerator[bytes, None]:
            for line in printed[name].splitlines():
                yield line

        async def talk(namespace: str, text: bytes) -> str:
            name = next(names)
            printed[name] = text
            spec = {"nodeName": "here", "containers": [{"name": "main", "image": "none"}]}
            metadata = {"name": name, "namespace": namespace}
            await client.create(PODS, {"metadata": metadata, "spec": spec})
            return name

        client.logs = logs
        return talk
