"""Programs of others on a real cluster with two nodes, beside the operator as people install it.

These tests are not part of `make test`: `make test-peers` builds the programs and runs them.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from devcluster import binaries, image_builds
from devcluster.binaries import CannotBuild
from devcluster.cluster import Cluster
from mpi_operator.kube import config
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import NAMESPACES
from tests.cluster.conftest import started_cluster
from tests.cluster.operator.installation import Installation
from tests.cluster.operator.lab import Lab
from tests.peers.flyte.executions import Flyte, templates
from tests.support import virtual_environments
from tests.support.mpijobs import MPIJOBS

_FLYTEKIT = ("flytekit==1.16.31", "flytekitplugins-kfmpi==1.16.31")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test waits for the cluster and what is installed there."""
    for item in items:
        if "tests/peers" in item.path.as_posix() and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(300))


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A cluster with two nodes that have the images of the operator and of jobs."""
    with cluster_for_peers() as shared:
        yield shared


@contextmanager
def cluster_for_peers(**options: Any) -> Iterator[Cluster]:
    """The same, with nodes that are special in some way."""
    with started_cluster(nodes=2, **options) as shared:
        try:
            archives = image_builds.provide(["mpi-operator", "kubectl-delivery", "pi-openmpi"])
        except CannotBuild as error:
            pytest.skip(str(error))
        shared.load(*archives.values())
        yield shared


@pytest.fixture(scope="session")
def installation(cluster: Cluster) -> Installation:
    """`kubectl apply -f deploy/v2beta1/mpi-operator.yaml`, and both replicas are ready."""
    installed = Installation(cluster)
    installed.apply()
    return installed


@pytest.fixture
async def lab(cluster: Cluster, installation: Installation) -> AsyncIterator[Lab]:
    """A namespace of the test's own, without jobs afterwards: the nodes are small."""
    async with HttpClient(config.load(kubeconfig=cluster.kubeconfig())) as client:
        created = await client.create(NAMESPACES, {"metadata": {"generateName": "test-"}})
        name = created["metadata"]["name"]
        yield Lab(client, name)
        await client.delete_collection(MPIJOBS, name)
        await client.delete(NAMESPACES, name)


@pytest.fixture(scope="session")
def flyte(cluster: Cluster, installation: Installation) -> Flyte:
    """Flyte: its SDK in an environment of its own, its back end, and an image for its tasks."""
    try:
        backend = binaries.provide(["flyte-backend"])["flyte-backend"]
        cluster.load(*image_builds.provide(["flyte"]).values())
    except CannotBuild as error:
        pytest.skip(str(error))
    python = virtual_environments.provide(*_FLYTEKIT) / "bin" / "python"
    return Flyte(templates(python), backend, cluster.kubeconfig())
