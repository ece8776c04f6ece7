"""A real API server that knows MPIJobs."""

import asyncio
from pathlib import Path

import pytest

from devcluster.control_plane import ControlPlane
from mpi_operator.kube import config
from mpi_operator.kube.http import HttpClient
from tests.support.mpijobs import install


@pytest.fixture(scope="session", autouse=True)
def definition(control_plane: ControlPlane) -> None:
    """Our definition, installed and served. Once for all tests: it is large.

    Only on a control plane of ours: a cluster of the user's may have another one in use.
    """
    asyncio.run(_install(control_plane.kubeconfig()))


async def _install(kubeconfig: Path) -> None:
    async with HttpClient(config.load(kubeconfig=kubeconfig)) as client:
        await install(client)
