"""A cluster in memory with this machine as its node, and helpers to use it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mpi_operator.kube.client import DeleteOptions, LogOptions
from mpi_operator.kube.resources import CONFIG_MAPS, PODS, Manifest
from mpi_operator.local.apiserver.cluster import LocalCluster
from mpi_operator.local.kubelet.node import Node
from mpi_operator.local.kubelet.node_pods import NodePods
from tests.support.waiting import until

NAMESPACE = "default"


class Pods:
    """The pods of a machine."""

    def __init__(self, cluster: LocalCluster, node: Node, node_pods: NodePods) -> None:
        self.cluster = cluster
        self.node = node
        self.log = node_pods.log

    async def create(self, name: str, *command: str, **spec: Any) -> None:
        """Create a pod with one container, or those in the spec."""
        container = {"name": "main", "image": "none", "command": list(command)}
        container |= spec.pop("container", {})
        whole = {"containers": [container], "restartPolicy": "Never", **spec}
        await self.cluster.create(
            PODS, {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": whole}
        )

    async def status(self, name: str) -> Manifest:
        pod = await self.cluster.get(PODS, name, NAMESPACE)
        status: Manifest = pod.get("status") or {}
        return status

    async def until_phase(self, name: str, *phases: str, seconds: float = 30) -> Manifest:
        async def is_there() -> bool:
            return (await self.status(name)).get("phase") in phases

        await until(is_there, seconds)
        return await self.status(name)

    async def end_of(self, name: str, seconds: float = 120) -> Manifest:
        return await self.until_phase(name, "Succeeded", "Failed", seconds=seconds)

    async def output(self, name: str, **options: Any) -> list[str]:
        lines = self.cluster.log(name, NAMESPACE, LogOptions(**options))
        return [line.decode() async for line in lines]

    async def printed(self, name: str, *command: str, **spec: Any) -> list[str]:
        """Run a pod to its end; its log."""
        await self.create(name, *command, **spec)
        await self.end_of(name)
        return await self.output(name)

    async def delete(self, name: str, grace_seconds: int | None = None) -> None:
        await self.cluster.delete(
            PODS, name, NAMESPACE, DeleteOptions(grace_period_seconds=grace_seconds)
        )

    async def until_gone(self, name: str, seconds: float = 20) -> None:
        async def is_gone() -> bool:
            names = [pod["metadata"]["name"] for pod in (await self.cluster.list(PODS)).items]
            return name not in names

        await until(is_gone, seconds)

    async def configure(self, name: str, **data: str) -> None:
        """Create or replace a ConfigMap."""
        manifest = {"metadata": {"name": name, "namespace": NAMESPACE}, "data": data}
        if any(each["metadata"]["name"] == name for each in (await self.maps())):
            await self.cluster.replace(CONFIG_MAPS, manifest)
        else:
            await self.cluster.create(CONFIG_MAPS, manifest)

    async def maps(self) -> list[Manifest]:
        return (await self.cluster.list(CONFIG_MAPS, NAMESPACE)).items


@asynccontextmanager
async def machine(run: Path, working_directory: Path, **options: Any) -> AsyncIterator[Pods]:
    """A node that runs until the block ends."""
    node_pods = NodePods()
    cluster = LocalCluster(logs=node_pods.log)
    options = {"oversubscribe": True, **options}
    options = {"directory": run, "working_directory": working_directory, **options}
    node = Node(cluster, pods=node_pods, **options)
    running = asyncio.create_task(node.run())
    started = asyncio.create_task(node.started())
    try:
        await asyncio.wait([running, started], return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            await running
        yield Pods(cluster, node, node_pods)
    finally:
        for task in (started, running):
            task.cancel()
        await asyncio.gather(started, running, return_exceptions=True)
