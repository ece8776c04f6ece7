"""A pod of the node: its runner, and what the cluster is told of it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from mpi_operator.kube.resources import Manifest, Resource

from . import pod_logs
from .context import PodContext
from .pod_runner import PodRunner


class Landlord(Protocol):
    """What a tenant needs of its node."""

    async def bind(self, pod: Manifest) -> None:
        """Say that the pod is this node's."""
        ...

    async def write(self, pod: Manifest, status: Manifest) -> None:
        """Store the status of a pod."""
        ...

    async def delete(self, pod: Manifest) -> None:
        """Take a pod that is over out of the cluster."""
        ...

    def left(self, tenant: "Tenant") -> None:
        """Hear that a pod is over."""
        ...

    def errand(self, task: Coroutine[Any, Any, None]) -> None:
        """See to something in the background."""
        ...


class Tenant:
    """Runs a pod, and writes down what becomes of it."""

    def __init__(self, node: Landlord, pod: Manifest, context: PodContext) -> None:
        self.pod = pod
        self.runner = PodRunner(context, self._hear)
        self._node = node
        self._directory = context.directory
        pod_logs.create(context.directory, context.key.name)
        self._latest: Manifest | None = None  # what is still to be written
        self._news = asyncio.Event()
        self._is_deleted = False
        self._is_gone = False
        self.task = asyncio.create_task(self._live())

    def saw(self, pod: Manifest) -> None:
        """The cluster tells of a change."""
        self.pod = pod
        metadata = pod["metadata"]
        if metadata.get("deletionTimestamp") and not self._is_deleted:
            self._is_deleted = True
            self.runner.stop(float(metadata.get("deletionGracePeriodSeconds") or 0))
            if self.task.done():
                self._node.errand(self._node.delete(pod))

    def evict(self, forget: Callable[[], None]) -> None:
        """The cluster knows this pod no more: nor shall the machine, once it has ended."""
        self._is_gone = True
        self.runner.kill()
        self.task.add_done_callback(lambda _: self._vanish(forget))

    def refresh(self, resource: Resource, name: str) -> None:
        """An object has changed that files may be made from."""
        if not self.task.done():
            self._node.errand(self.runner.refresh(resource, name))

    def _vanish(self, forget: Callable[[], None]) -> None:
        pod_logs.remove_pod(self._directory)
        forget()

    def _hear(self, status: Manifest) -> None:
        self._latest = status
        self._news.set()

    async def _live(self) -> None:
        await self._node.bind(self.pod)
        writing = asyncio.create_task(self._write())
        try:
            await self.runner.run()
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
        await self._flush()
        self._node.left(self)
        if self._is_deleted:
            await self._node.delete(self.pod)

    async def _write(self) -> None:
        while True:
            await self._news.wait()
            await self._flush()

    async def _flush(self) -> None:
        """Store what was said last; what was said before it is of no interest any more."""
        while self._latest is not None:
            status = self._latest
            self._news.clear()
            if not self._is_gone:
                await self._node.write(self.pod, status)
            if self._latest is status:
                self._latest = None
