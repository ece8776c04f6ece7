"""A control plane of its own: the CRD belongs to a whole cluster."""

from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import pytest

from devcluster.control_plane import ControlPlane
from mpi_operator.api.crd import v2beta1_only
from mpi_operator.kube import config, errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES
from tests.api.conftest import started_control_plane
from tests.support.mpijobs import uninstall
from tests.support.webhook_replica import CONFIGURATION, CRD, MUTATING, VALIDATING, edit


@pytest.fixture(scope="session")
def webhook_plane() -> Iterator[ControlPlane]:
    with started_control_plane() as control_plane:
        yield control_plane


@pytest.fixture
async def admin(webhook_plane: ControlPlane) -> AsyncIterator[HttpClient]:
    """An administrator's client. What the test installs for the whole cluster is removed."""
    async with HttpClient(config.load(kubeconfig=webhook_plane.kubeconfig())) as client:
        yield client
        for resource in (VALIDATING, MUTATING):
            with suppress(errors.NotFound):
                await client.delete(resource, CONFIGURATION)
        await _without_webhook(client)
        await uninstall(client)


async def _without_webhook(client: HttpClient) -> None:
    """Make jobs deletable without a webhook."""
    with suppress(errors.NotFound):
        plain = v2beta1_only()["spec"]
        await edit(client, CUSTOM_RESOURCE_DEFINITIONS, CRD, lambda crd: crd.update(spec=plain))


@pytest.fixture
async def home(admin: HttpClient) -> str:
    """A namespace for the Secret and for jobs."""
    created = await admin.create(NAMESPACES, {"metadata": {"generateName": "test-"}})
    return str(created["metadata"]["name"])
