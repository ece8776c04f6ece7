"""GPUs that are not there: nodes claim them, and schedulers count them like any resource."""

import json

from devcluster.cluster import Cluster
from tests.support.waiting import block_until

GPU = "nvidia.com/gpu"
GPUS = "4"


def claim(cluster: Cluster) -> None:
    """Give both nodes GPUs, for as long as they live."""
    path = f"/status/capacity/{GPU.replace('/', '~1')}"
    patch = json.dumps([{"op": "add", "path": path, "value": GPUS}])
    for node in ("node-0", "node-1"):
        cluster.kubectl("patch", "node", node, "--subresource=status", "--type=json", "-p", patch)
    # The kubelet makes them allocatable with its next report.
    block_until(lambda: _allocatable(cluster) == [GPUS, GPUS], 60)


def _allocatable(cluster: Cluster) -> list[str]:
    nodes = json.loads(cluster.kubectl("get", "nodes", "-o", "json"))["items"]
    return [each["status"]["allocatable"].get(GPU, "0") for each in nodes]
