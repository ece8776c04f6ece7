"""A real API server that serves MPIJobs, and operators for them."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import pytest_asyncio

from devcluster.control_plane import ControlPlane
from mpi_operator.kube import config
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import NAMESPACES
from tests.api.conftest import started_control_plane
from tests.support.jobs import Jobs
from tests.support.mpijobs import install_on
from tests.support.operator import Operator, allow, operator

StartOperator: TypeAlias = Callable[..., Any]

_PRIVATE = 12  # as many tests as want a namespace of their own, and a few more


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests that wait for workers to be lost last: the wait begins with their file."""
    items.sort(key=lambda item: "lost_workers" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session", autouse=True)
def definition(control_plane: ControlPlane) -> None:
    """Our definition, installed and served. On a control plane of ours only."""
    install_on(control_plane.kubeconfig())


@pytest.fixture
def jobs(client: HttpClient, namespace: str) -> Jobs:
    """The jobs of a namespace that only this test uses."""
    return Jobs(client, namespace)


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


@dataclass(frozen=True)
class Resident:
    """An operator that many tests share, and its namespaces."""

    operator: Operator
    namespace: str  # for all
    private: list[str]  # each for one test


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def resident(
    control_plane: ControlPlane, definition: None, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Resident]:
    """An operator for all tests that leave it and its namespace as they are."""
    admin, directory = control_plane.kubeconfig(), tmp_path_factory.mktemp("resident")
    async with HttpClient(config.load(kubeconfig=admin)) as client:
        home, *others = [await new_namespace(client) for _ in range(1 + _PRIVATE)]
        for namespace in others:
            await allow(client, namespace, home)
        also = f"--namespace={','.join(others)}"
        async with operator(client, admin, home, directory, also) as process:
            yield Resident(process, home, list(others))
        for namespace in (home, *others):
            await client.delete(NAMESPACES, namespace)


async def new_namespace(client: HttpClient) -> str:
    """A namespace for an operator that several tests share."""
    created = await client.create(NAMESPACES, {"metadata": {"generateName": "home-"}})
    return str(created["metadata"]["name"])


@pytest.fixture
def private(client: HttpClient, resident: Resident) -> Jobs:
    """The jobs of a namespace of the shared operator that no other test uses."""
    return Jobs(client, resident.private.pop())


@pytest.fixture
def shared(client: HttpClient, resident: Resident) -> Jobs:
    """The jobs of the shared namespace: each job name is used by one test only."""
    return Jobs(client, resident.namespace)


@pytest.fixture(scope="session")
def spare_control_plane() -> Iterator[ControlPlane]:
    """A control plane for what concerns a whole cluster. Tests install our kind if they need it."""
    with started_control_plane(controller_manager=True) as spare:
        yield spare


@pytest.fixture
async def spare_client(spare_control_plane: ControlPlane) -> AsyncIterator[HttpClient]:
    async with HttpClient(config.load(kubeconfig=spare_control_plane.kubeconfig())) as client:
        yield client


@pytest.fixture
async def spare_jobs(spare_client: HttpClient) -> AsyncIterator[Jobs]:
    """The jobs of a namespace of the spare control plane."""
    created = await spare_client.create(NAMESPACES, {"metadata": {"generateName": "test-"}})
    namespace = created["metadata"]["name"]
    yield Jobs(spare_client, namespace)
    await spare_client.delete(NAMESPACES, namespace)
