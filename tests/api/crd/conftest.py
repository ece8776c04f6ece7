"""A real API server with the CRD installed."""

import asyncio
from pathlib import Path

import pytest

from devcluster.control_plane import ControlPlane
from mpi_operator.kube import config
from mpi_operator.kube.http import HttpClient
from tests.support.mpijobs import install


@pytest.fixture(scope="session", autouse=True)
def crd(control_plane: ControlPlane) -> None:
    """Installs our CRD, once for all tests because it is large.

    Only on a control plane of ours: on a user's cluster another CRD may be in use.
    """
    asyncio.run(_install(control_plane.kubeconfig()))


async def _install(kubeconfig: Path) -> None:
    async with HttpClient(config.load(kubeconfig=kubeconfig)) as client:
        await install(client)
