"""What old manifests need of a cluster: images of the examples, and nodes with GPUs."""

import pytest

from devcluster import image_builds
from devcluster.binaries import CannotBuild
from devcluster.cluster import Cluster
from tests.cluster.operator.installation import Installation
from tests.support import gpus as extended_resources


@pytest.fixture(scope="session")
def gpus(cluster: Cluster, installation: Installation) -> None:
    """Both nodes claim GPUs."""
    extended_resources.claim(cluster)


@pytest.fixture(scope="session")
def example_images(cluster: Cluster) -> None:
    try:
        cluster.load(*image_builds.provide(["allreduce-benchmark", "elastic"]).values())
    except CannotBuild as error:
        pytest.skip(str(error))
