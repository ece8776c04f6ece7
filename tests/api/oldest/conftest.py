"""An API server and a controller manager of the oldest Kubernetes that we support.

The operator is installed from one file, and runs as a process, as the account of that file.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from devcluster.control_plane import ControlPlane
from devcluster.ports import free_port
from mpi_operator.kube import config
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import NAMESPACES
from tests.api.conftest import started_control_plane
from tests.support.jobs import Jobs
from tests.support.kubectl import Kubectl, Result
from tests.support.operator import HOME, Operator, account, started
from tests.support.versions import RESOURCES, v1
from tests.support.waiting import until
from tests.support.webhook_replica import redirect

FILE = Path(__file__).parents[3] / "deploy/v2beta1/mpi-operator.yaml"


@pytest.fixture(scope="session")
def oldest_plane() -> Iterator[ControlPlane]:
    with started_control_plane(controller_manager=True, oldest=True) as control_plane:
        yield control_plane


@pytest.fixture(scope="session")
def applied(oldest_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> list[Result]:
    """What kubectl says when it installs everything, and again, and what would still change."""
    kubectl = Kubectl(oldest_plane.kubeconfig(), tmp_path_factory.mktemp("kubectl"))
    return [kubectl(verb, "-f", str(FILE)) for verb in ("apply", "apply", "diff")]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def oldest_operator(
    oldest_plane: ControlPlane,
    applied: list[Result],
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Operator]:
    """An operator for all namespaces, with its webhook."""
    admin, directory = oldest_plane.kubeconfig(), tmp_path_factory.mktemp("operator")
    port = free_port()
    async with HttpClient(config.load(kubeconfig=admin)) as client:
        await redirect(client, f"https://localhost:{port}")
        kubeconfig = await account(client, admin, HOME, directory)
    flags = ("--webhooks=on", f"--webhook-port={port}")
    process = Operator(kubeconfig, directory / "operator.log", *flags)
    async with started(process):
        await process.leading()
        await until(lambda: _converts(oldest_plane))
        yield process


def _converts(control_plane: ControlPlane) -> bool:
    path = f"{RESOURCES['v1'].collection_path('default')}?dryRun=All"
    return control_plane.endpoint().request("POST", path, v1()).status == 201


@pytest.fixture
async def client(
    oldest_plane: ControlPlane, oldest_operator: Operator
) -> AsyncIterator[HttpClient]:
    async with HttpClient(config.load(kubeconfig=oldest_plane.kubeconfig())) as client:
        yield client


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_namespace(oldest_plane: ControlPlane, oldest_operator: Operator) -> str:
    """One for all: the tests give their jobs different names."""
    async with HttpClient(config.load(kubeconfig=oldest_plane.kubeconfig())) as client:
        created = await client.create(NAMESPACES, {"metadata": {"generateName": "oldest-"}})
    return str(created["metadata"]["name"])


@pytest.fixture
def namespace(shared_namespace: str) -> str:
    return shared_namespace


@pytest.fixture
def jobs(client: HttpClient, namespace: str) -> Jobs:
    return Jobs(client, namespace)
