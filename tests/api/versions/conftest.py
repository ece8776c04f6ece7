"""A real API server with everything installed from one file, and the webhook of the operator.

The API server runs outside of any cluster network, so it finds the webhook by an address instead of
a Service.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from devcluster.control_plane import ControlPlane
from devcluster.ports import free_port
from mpi_operator.kube import config
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, Manifest
from mpi_operator.operator.options import Options
from mpi_operator.operator.webhook_thread import decisions
from tests.api.conftest import started_control_plane
from tests.support.kubectl import Kubectl, Result
from tests.support.versions import RESOURCES, v1alpha1
from tests.support.waiting import until
from tests.support.webhook_replica import CONFIGURATION, CRD, MUTATING, VALIDATING, Replica, edit

FILE = Path(__file__).parents[3] / "deploy/v2beta1/mpi-operator.yaml"


@dataclass(frozen=True)
class Installation:
    """What `kubectl apply` wrote the first and the second time."""

    first: Result
    second: Result


@pytest.fixture(scope="session")
def versions_plane() -> Iterator[ControlPlane]:
    with started_control_plane() as control_plane:
        yield control_plane


@pytest.fixture(scope="session")
def kubectl(versions_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    return Kubectl(versions_plane.kubeconfig(), tmp_path_factory.mktemp("kubectl"))


@pytest.fixture(scope="session")
def installation(kubectl: Kubectl) -> Installation:
    """All of the manifests, installed as people do, and then again."""
    first = kubectl("apply", "-f", str(FILE))
    return Installation(first, kubectl("apply", "-f", str(FILE)))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def webhook(versions_plane: ControlPlane, installation: Installation) -> AsyncIterator[None]:
    """The webhook, and an API server that uses it."""
    admin = versions_plane.kubeconfig()
    decide = decisions(Options(gpus_per_node=8))
    replica = Replica(admin, "mpi-operator", free_port(), decisions=decide)
    async with (
        HttpClient(config.load(kubeconfig=admin)) as client,
        replica.running(),
    ):
        await _redirect(client, replica.url)
        await until(lambda: _is_used(versions_plane))
        yield


async def _redirect(client: HttpClient, url: str) -> None:
    """Have the API server call the webhook by its address."""

    def conversion(crd: Manifest) -> None:
        _call(crd["spec"]["conversion"]["webhook"], url)

    def admission(configuration: Manifest) -> None:
        for each in configuration["webhooks"]:
            _call(each, url)

    await edit(client, CUSTOM_RESOURCE_DEFINITIONS, CRD, conversion)
    for resource in (MUTATING, VALIDATING):
        await edit(client, resource, CONFIGURATION, admission)


def _call(webhook: Manifest, url: str) -> None:
    client = webhook["clientConfig"]
    webhook["clientConfig"] = {
        "url": url + client["service"]["path"],
        **{key: value for key, value in client.items() if key != "service"},
    }


def _is_used(control_plane: ControlPlane) -> bool:
    """Whether the API server converts, and refuses what only admission can refuse."""
    path = f"{RESOURCES['v1alpha1'].collection_path('default')}?dryRun=All"
    answer = control_plane.endpoint().request("POST", path, v1alpha1("pi", "default", gpus=24))
    refused = control_plane.endpoint().request("POST", path, v1alpha1("pi", "default"))
    return answer.status == 201 and "admission webhook" in refused.body.decode()


@pytest.fixture
async def client(versions_plane: ControlPlane, webhook: None) -> AsyncIterator[HttpClient]:
    async with HttpClient(config.load(kubeconfig=versions_plane.kubeconfig())) as client:
        yield client


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_namespace(versions_plane: ControlPlane, webhook: None) -> str:
    """One for all: the tests give their jobs different names."""
    async with HttpClient(config.load(kubeconfig=versions_plane.kubeconfig())) as client:
        created = await client.create(NAMESPACES, {"metadata": {"generateName": "versions-"}})
    return str(created["metadata"]["name"])


@pytest.fixture
def namespace(shared_namespace: str) -> str:
    return shared_namespace
