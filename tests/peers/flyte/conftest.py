"""Flyte: its SDK in an environment of its own, its back end, and an image for its tasks."""

import pytest

from devcluster import binaries, image_builds
from devcluster.binaries import CannotBuild
from devcluster.cluster import Cluster
from tests.cluster.operator.installation import Installation
from tests.peers.flyte.executions import Flyte, templates
from tests.support import virtual_environments

_PACKAGES = ("flytekit==1.16.31", "flytekitplugins-kfmpi==1.16.31")


@pytest.fixture(scope="session")
def flyte(cluster: Cluster, installation: Installation) -> Flyte:
    try:
        backend = binaries.provide(["flyte-backend"])["flyte-backend"]
        cluster.load(*image_builds.provide(["flyte"]).values())
    except CannotBuild as error:
        pytest.skip(str(error))
    python = virtual_environments.provide(*_PACKAGES) / "bin" / "python"
    return Flyte(templates(python), backend, cluster.kubeconfig())
