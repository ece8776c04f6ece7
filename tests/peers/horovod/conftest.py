"""Nodes with TensorFlow and Horovod, of which one can be lost."""

from collections.abc import Iterator

import pytest

from devcluster import image_builds
from devcluster.binaries import CannotBuild
from devcluster.cluster import Cluster
from tests.cluster.conftest import _mended
from tests.peers.conftest import cluster_for_peers

__all__ = ["_mended"]  # a fixture: whatever a test broke is whole for the next one


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    # Long enough for a busy machine, short enough that a lost node is noticed within a test.
    with cluster_for_peers(node_grace_seconds=15) as shared:
        try:
            archives = image_builds.provide(["horovod-examples", "tensorflow-benchmarks"])
        except CannotBuild as error:
            pytest.skip(str(error))
        shared.load(*archives.values())
        yield shared
