"""The HTTP client keeps the promises of every client, on a real API server."""

import itertools
import sys
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from devcluster.control_plane import ControlPlane
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import PODS, Resource
from tests.contract.client import ClientContract, Talker
from tests.support.kubelet import kubelet, pod
from tests.support.widgets import WIDGETS, install


class TestHttpClient(ClientContract):
    @pytest.fixture
    async def widgets(self, client: HttpClient, control_plane: ControlPlane) -> Resource:
        assert control_plane.directory.exists(), "kinds are for clusters of ours, not the user's"
        await install(client)
        return WIDGETS

    @pytest.fixture
    async def talker(
        self, client: HttpClient, control_plane: ControlPlane
    ) -> AsyncIterator[Talker]:
        printed: dict[str, bytes] = {}
        names = (f"talker-{number}" for number in itertools.count())

        async def logs(request: web.Request) -> web.Response:
            limit = int(request.query.get("limitBytes", sys.maxsize))
            return web.Response(body=printed[request.match_info["pod"]][:limit])

        async with kubelet(client, control_plane, logs) as node:

            async def talk(namespace: str, text: bytes) -> str:
                name = next(names)
                printed[name] = text
                await client.create(PODS, pod(name, namespace, nodeName=node))
                return name

            yield talk
