"""Pods with logs, on a cluster without a node."""

import itertools
from collections.abc import AsyncGenerator

from mpi_operator.kube.client import LogOptions
from mpi_operator.kube.resources import PODS
from mpi_operator.local.apiserver.cluster import LocalCluster
from tests.contract.client import Talker


def talker(cluster: LocalCluster) -> Talker:
    """Creates pods with a given log."""
    printed: dict[str, bytes] = {}
    names = (f"talker-{number}" for number in itertools.count())

    async def logs(name: str, namespace: str, options: LogOptions) -> AsyncGenerator[bytes, None]:
        for line in printed[name].splitlines():
            yield line

    async def talk(namespace: str, text: bytes) -> str:
        name = next(names)
        printed[name] = text
        spec = {"nodeName": "here", "containers": [{"name": "main", "image": "none"}]}
        metadata = {"name": name, "namespace": namespace}
        await cluster.create(PODS, {"metadata": metadata, "spec": spec})
        return name

    cluster.logs = logs
    return talk
