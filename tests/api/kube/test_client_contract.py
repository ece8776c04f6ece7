"""The HTTP client keeps the promises of every client, on a real API server."""

import pytest

from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import Resource
from tests.contract.client import ClientContract
from tests.support.widgets import WIDGETS, install


class TestHttpClient(ClientContract):
    @pytest.fixture
    async def widgets(self, client: HttpClient) -> Resource:
        await install(client)
        return WIDGETS
