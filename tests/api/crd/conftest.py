"""A real API server that knows MPIJobs."""

import asyncio
from pathlib import Path

import pytest

from mpi_operator.kube import config
from mpi_operator.kube.http import HttpClient
from tests.support.mpijobs import install


@pytest.fixture(scope="session", autouse=True)
def definition(kubeconfig: Path | None) -> None:
    """Our definition, installed and served. Once for all tests: it is large."""
    asyncio.run(_install(kubeconfig))


async def _install(kubeconfig: Path | None) -> None:
    async with HttpClient(config.load(kubeconfig=kubeconfig)) as client:
        await install(client)
