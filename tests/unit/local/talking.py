"""Pods with logs, on a cluster without a node."""

import itertools
from collections.abc import AsyncGenerator

from mpi_operator.kube.client import LogOptions
from mpi_operator.kube.resources import PODS
from mpi_operator.local.apiserver.cluster import LocalCluster
from tests.contract.client import Talker


class GivenLogs:
    """The logs of pods, as the test gives them."""

    def __init__(self) -> None:
        self._texts: dict[str, bytes] = {}
        self._names = (f"talker-{number}" for number in itertools.count())

    async def read(
        self, name: str, namespace: str, options: LogOptions
    ) -> AsyncGenerator[bytes, None]:
        for line in self._texts[name].splitlines():
            yield line

    def talker(self, cluster: LocalCluster) -> Talker:
        """Creates pods with a given log."""

        async def talk(namespace: str, text: bytes) -> str:
            name = next(self._names)
            self._texts[name] = text
            spec = {"nodeName": "here", "containers": [{"name": "main", "image": "none"}]}
            metadata = {"name": name, "namespace": namespace}
            await cluster.create(PODS, {"metadata": metadata, "spec": spec})
            return name

        return talk
