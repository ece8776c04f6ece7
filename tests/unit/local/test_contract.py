"""The local cluster passes the contract of every client."""

import pytest

from mpi_operator.kube.resources import Resource
from mpi_operator.local.apiserver.cluster import LocalCluster
from mpi_operator.local.apiserver.served_kinds import Kind, Scale
from tests.contract.client import ClientContract, Talker
from tests.support.widgets import WIDGETS
from tests.unit.local.talking import GivenLogs


class TestLocalCluster(ClientContract):
    @pytest.fixture
    def logs(self) -> GivenLogs:
        return GivenLogs()

    @pytest.fixture
    def client(self, logs: GivenLogs) -> LocalCluster:
        scale = Scale(".spec.replicas", ".status.replicas")
        return LocalCluster([Kind(WIDGETS, has_status=True, scale=scale)], logs=logs.read)

    @pytest.fixture
    def namespace(self) -> str:
        return "here"

    @pytest.fixture
    def widgets(self) -> Resource:
        return WIDGETS

    @pytest.fixture
    def talker(self, client: LocalCluster, logs: GivenLogs) -> Talker:
        return logs.talker(client)
