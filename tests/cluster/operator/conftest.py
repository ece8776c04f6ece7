"""The operator in the cluster, installed from the manifests that we ship."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from devcluster import image_builds
from devcluster.binaries import CannotBuild
from devcluster.cluster import Cluster
from mpi_operator.kube import config
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import NAMESPACES
from tests.cluster.operator.installation import Installation
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import FLAVOURS
from tests.support.mpijobs import MPIJOBS
from tests.support.waiting import block_until


@pytest.fixture(scope="session")
def images(cluster: Cluster) -> None:
    """The operator's image, and those of the jobs, on both nodes."""
    names = ("mpi-operator", "kubectl-delivery", *(f"pi-{mpi}" for mpi in FLAVOURS))
    try:
        archives = image_builds.provide(names)
    except CannotBuild as error:
        pytest.skip(str(error))
    cluster.load(*archives.values())


@pytest.fixture(scope="session")
def example_images(cluster: Cluster, images: None) -> None:
    """Those of the examples that other tests do without."""
    cluster.load(*image_builds.provide(["allreduce-benchmark", "elastic"]).values())


@pytest.fixture(scope="session")
def installation(cluster: Cluster, images: None) -> Installation:
    """`kubectl apply -f deploy/v2beta1/mpi-operator.yaml`, and both replicas are ready."""
    installed = Installation(cluster)
    installed.apply()
    return installed


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[HttpClient]:
    async with HttpClient(config.load(kubeconfig=cluster.kubeconfig())) as client:
        yield client


@pytest.fixture
async def lab(installation: Installation, client: HttpClient) -> AsyncIterator[Lab]:
    """A namespace of the test's own, without jobs afterwards: the nodes are small."""
    # The test before may have killed or replaced some of its pods.
    await asyncio.to_thread(block_until, installation.serves, 60)
    created = await client.create(NAMESPACES, {"metadata": {"generateName": "test-"}})
    name = created["metadata"]["name"]
    yield Lab(client, name)
    await client.delete_collection(MPIJOBS, name)
    await client.delete(NAMESPACES, name)
