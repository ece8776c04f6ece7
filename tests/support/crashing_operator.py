"""An operator in this process that crashes at one of its writes and is started again.

A killed process leaves what the API server has stored, and loses what it remembered. So does a
`Controller` that is thrown away, and a new one starts half a second faster than a process. So this
is for trying *every* write; `test_kills` also kills real processes.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

from mpi_operator.build.settings import Settings
from mpi_operator.controller.controller import Controller
from mpi_operator.kube import errors
from mpi_operator.kube.client import Client
from mpi_operator.kube.resources import EVENTS, Manifest, Resource

T = TypeVar("T")


@dataclass(frozen=True)
class Crash:
    """At which write of a run to crash, and how many runs do so."""

    at: int
    is_answered: bool  # the server has done the write; only the answer is lost
    times: int = 1

    def __str__(self) -> str:
        return f"{'after' if self.is_answered else 'before'} write {self.at}"


NEVER = Crash(0, is_answered=False, times=0)


@dataclass
class CrashingClient:
    """The client of one run. It writes one at a time, so that "the n-th write" is exact."""

    client: Client
    crash: Crash
    writes: list[str] = field(default_factory=list)
    crashed: asyncio.Event = field(default_factory=asyncio.Event)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def create(self, resource: Resource, manifest: Manifest) -> Manifest:
        name = f"create {resource.plural} {manifest['metadata']['name']}"
        return await self._write(resource, name, self.client.create, resource, manifest)

    async def replace(
        self, resource: Resource, manifest: Manifest, *, subresource: str = ""
    ) -> Manifest:
        name = f"replace {resource.plural} {subresource} {manifest['metadata']['name']}"
        return await self._write(
            resource, name, self.client.replace, resource, manifest, subresource=subresource
        )

    async def patch(self, resource: Resource, name: str, *args: Any, **options: Any) -> Manifest:
        what = f"patch {resource.plural} {name}"
        return await self._write(
            resource, what, self.client.patch, resource, name, *args, **options
        )

    async def delete(self, resource: Resource, name: str, *args: Any, **options: Any) -> None:
        what = f"delete {resource.plural} {name}"
        await self._write(resource, what, self.client.delete, resource, name, *args, **options)

    async def get(self, *args: Any, **options: Any) -> Manifest:
        return await self.client.get(*args, **options)

    async def _write(
        self,
        resource: Resource,
        name: str,
        call: Callable[..., Awaitable[T]],
        *args: Any,
        **options: Any,
    ) -> T:
        if resource == EVENTS:
            self._check_running()
            return await call(*args, **options)
        async with self._lock:
            self._check_running()
            self.writes.append(name)
            is_last = len(self.writes) == self.crash.at
            if is_last and not self.crash.is_answered:
                await self._stop_for_good()
            try:
                return await call(*args, **options)
            finally:
                if is_last:
                    await self._stop_for_good()

    def _check_running(self) -> None:
        if self.crashed.is_set():
            raise errors.NotLeader("crashed")  # no more writes, not even events

    async def _stop_for_good(self) -> NoReturn:
        """Block the caller, so that nothing happens after this write."""
        self.crashed.set()
        await asyncio.Future()
        raise AssertionError("unreachable")


@dataclass
class CrashingOperator:
    """The operator of a namespace, over all its runs."""

    client: Client
    namespace: str
    crash: Crash
    runs: list[CrashingClient] = field(default_factory=list)

    @property
    def crashes(self) -> int:
        return sum(each.crashed.is_set() for each in self.runs)

    @property
    def writes(self) -> list[str]:
        return [write for each in self.runs for write in each.writes]

    async def run(self) -> NoReturn:
        while True:
            crash = self.crash if self.crashes < self.crash.times else NEVER
            await self._run_once(crash)

    async def _run_once(self, crash: Crash) -> None:
        writer = CrashingClient(self.client, crash)
        self.runs.append(writer)
        client: Client = writer  # type: ignore[assignment] # writers use no more of it
        controller = Controller(self.client, client, Settings(), namespaces=(self.namespace,))
        tasks: list[asyncio.Task[Any]] = [asyncio.create_task(controller.follow())]
        try:
            await controller.synced()
            tasks.append(asyncio.create_task(controller.lead()))
            crashed = asyncio.create_task(writer.crashed.wait())
            tasks.append(crashed)
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            assert crashed.done(), "the controller ended by itself"
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def crashing_operator(
    client: Client, namespace: str, crash: Crash
) -> AsyncIterator[CrashingOperator]:
    """Run an operator that crashes and is started again, until the block ends."""
    crashing = CrashingOperator(client, namespace, crash)
    running = asyncio.create_task(crashing.run())
    try:
        yield crashing
        assert not running.done(), running.exception()
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
