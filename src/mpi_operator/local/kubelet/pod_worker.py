"""One pod of the node: runs it, and writes its status to the cluster."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from mpi_operator.kube.resources import Manifest, Resource

from . import pod_logs
from .context import PodContext
from .pod_api import PodApi, PodMetadata
from .pod_runner import PodRunner

# Runs a task beside everything else.
InBackground: TypeAlias = Callable[[Coroutine[Any, Any, None]], None]


class PodWorker:
    """Runs a pod and reports its status. `on_finished` is called when its processes have ended."""

    def __init__(
        self,
        api: PodApi,
        pod: Manifest,
        context: PodContext,
        in_background: InBackground,
        on_finished: Callable[["PodWorker"], None],
    ) -> None:
        self.runner = PodRunner(context, self._report)
        self._pod = pod
        self._api = api
        self._in_background = in_background
        self._on_finished = on_finished
        self._directory = context.directory
        pod_logs.create(context.directory, context.key.name)
        self._unwritten: Manifest | None = None
        self._has_unwritten = asyncio.Event()
        self._is_terminating = False
        self._is_removed = False
        self.task = asyncio.create_task(self._run())

    def update(self, metadata: PodMetadata) -> None:
        """The pod has changed in the cluster. Of those changes only a deletion matters here."""
        if metadata.deletion_timestamp and not self._is_terminating:
            self._is_terminating = True
            self.runner.stop(float(metadata.deletion_grace_period_seconds or 0))
            if self.task.done():
                self._in_background(self._api.delete(self._pod))

    def remove(self, forget: Callable[[], None]) -> None:
        """The cluster no longer has this pod: kill it, then remove its files."""
        self._is_removed = True
        self.runner.kill()
        self.task.add_done_callback(lambda _: self._clean_up(forget))

    def refresh(self, resource: Resource, name: str) -> None:
        """An object has changed that volumes may be made from."""
        if not self.task.done():
            self._in_background(self.runner.refresh(resource, name))

    def _clean_up(self, forget: Callable[[], None]) -> None:
        pod_logs.remove_pod(self._directory)
        forget()

    def _report(self, status: Manifest) -> None:
        self._unwritten = status
        self._has_unwritten.set()

    async def _run(self) -> None:
        await self._api.bind(self._pod)
        writing = asyncio.create_task(self._keep_writing())
        try:
            await self.runner.run()
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
        await self._write()
        self._on_finished(self)
        if self._is_terminating:
            await self._api.delete(self._pod)

    async def _keep_writing(self) -> None:
        while True:
            await self._has_unwritten.wait()
            await self._write()

    async def _write(self) -> None:
        """Write the latest status; those before it are skipped."""
        while self._unwritten is not None:
            status = self._unwritten
            self._has_unwritten.clear()
            if not self._is_removed:
                await self._api.write_status(self._pod, status)
            if self._unwritten is status:
                self._unwritten = None
