"""What old manifests need of a cluster: images of the examples, and nodes with GPUs."""

import json

import pytest

from devcluster import image_builds
from devcluster.binaries import CannotBuild
from devcluster.cluster import Cluster
from tests.cluster.operator.installation import Installation
from tests.support.waiting import block_until

GPU = "nvidia.com/gpu"
GPUS = "4"


@pytest.fixture(scope="session")
def gpus(cluster: Cluster, installation: Installation) -> None:
    """Both nodes claim GPUs, which a scheduler counts like any extended resource."""
    path = f"/status/capacity/{GPU.replace('/', '~1')}"
    claim = json.dumps([{"op": "add", "path": path, "value": GPUS}])
    for node in ("node-0", "node-1"):
        cluster.kubectl("patch", "node", node, "--subresource=status", "--type=json", "-p", claim)
    # The kubelet makes them allocatable with its next report.
    block_until(lambda: _allocatable(cluster) == [GPUS, GPUS], 60)


@pytest.fixture(scope="session")
def example_images(cluster: Cluster) -> None:
    try:
        cluster.load(*image_builds.provide(["allreduce-benchmark", "elastic"]).values())
    except CannotBuild as error:
        pytest.skip(str(error))


def _allocatable(cluster: Cluster) -> list[str]:
    nodes = json.loads(cluster.kubectl("get", "nodes", "-o", "json"))["items"]
    return [each["status"]["allocatable"].get(GPU, "0") for each in nodes]
