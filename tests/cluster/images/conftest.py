"""Our images on the nodes of the cluster."""

from collections.abc import Callable

import pytest

from devcluster import image_builds
from devcluster.binaries import CannotBuild
from devcluster.cluster import Cluster

Loaded = Callable[[str], str]


@pytest.fixture(scope="session")
def loaded(cluster: Cluster) -> Loaded:
    """Puts an image of the catalog onto the nodes, and says what it is called there."""

    def load(name: str) -> str:
        try:
            archives = image_builds.provide([name])
        except CannotBuild as error:
            pytest.skip(str(error))
        cluster.load(*archives.values())
        return image_builds.IMAGES[name].tags[0]

    return load
