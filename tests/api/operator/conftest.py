"""A real API server that knows MPIJobs, and operators to look after them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from devcluster.control_plane import ControlPlane
from mpi_operator.kube import config
from mpi_operator.kube.http import HttpClient
from tests.support.hands import Hands
from tests.support.mpijobs import install
from tests.support.operator import Operator, operator

StartOperator: TypeAlias = Callable[..., Any]


@pytest.fixture(scope="session", autouse=True)
def definition(control_plane: ControlPlane) -> None:
    """Our definition, installed and served. On a control plane of ours only."""
    asyncio.run(_install(control_plane.kubeconfig()))


async def _install(kubeconfig: Path) -> None:
    async with HttpClient(config.load(kubeconfig=kubeconfig)) as client:
        await install(client)


@pytest.fixture
def hands(client: HttpClient, namespace: str) -> Hands:
    """What happens to the pods of the test's namespace."""
    return Hands(client, namespace)


@pytest.fixture
async def start_operator(
    client: HttpClient, control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> AsyncIterator[StartOperator]:
    """Starts operators for the test's namespace, with flags of the test's choice."""
    async with AsyncExitStack() as stack:

        async def start(*arguments: str, **options: Any) -> Operator:
            admin = control_plane.kubeconfig()
            return await stack.enter_async_context(
                operator(client, admin, namespace, tmp_path, *arguments, **options)
            )

        yield start


@pytest.fixture
async def running_operator(start_operator: StartOperator) -> Operator:
    """An operator as most people run it."""
    started: Operator = await start_operator()
    return started
