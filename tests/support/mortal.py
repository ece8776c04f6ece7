"""An operator in this process that can die at any of its writes, and be started again.

What a killed process leaves behind is what the API server has stored; what it knew is gone. The
same is true of a `Controller` that is thrown away, and a new one takes half a second less to start
than a new process. So this is for trying *every* write; `test_kills` also kills real processes.
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
class Death:
    """At which write, counted by each incarnation, and how many incarnations die so."""

    at: int
    is_answered: bool  # the server has done the write; only the answer is lost
    times: int = 1

    def __str__(self) -> str:
        return f"{'after' if self.is_answered else 'before'} write {self.at}"


NEVER = Death(0, is_answered=False, times=0)


@dataclass
class MortalClient:
    """The writing client of one incarnation. One write at a time, so that "the n-th" is exact."""

    client: Client
    death: Death
    writes: list[str] = field(default_factory=list)
    dead: asyncio.Event = field(default_factory=asyncio.Event)
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
            self._check_alive()
            return await call(*args, **options)
        async with self._lock:
            self._check_alive()
            self.writes.append(name)
            is_last = len(self.writes) == self.death.at
            if is_last and not self.death.is_answered:
                await self._die()
            try:
                return await call(*args, **options)
            finally:
                if is_last:
                    await self._die()

    def _check_alive(self) -> None:
        if self.dead.is_set():
            raise errors.NotLeader("dead")  # not one more write, not even an event

    async def _die(self) -> NoReturn:
        """Nothing that comes after the write happens any more."""
        self.dead.set()
        await asyncio.Future()
        raise AssertionError("unreachable")


@dataclass
class Mortal:
    """The operator of a namespace through its incarnations."""

    client: Client
    namespace: str
    death: Death
    incarnations: list[MortalClient] = field(default_factory=list)

    @property
    def deaths(self) -> int:
        return sum(each.dead.is_set() for each in self.incarnations)

    @property
    def writes(self) -> list[str]:
        return [write for each in self.incarnations for write in each.writes]

    async def live(self) -> NoReturn:
        while True:
            death = self.death if self.deaths < self.death.times else NEVER
            await self._incarnation(death)

    async def _incarnation(self, death: Death) -> None:
        writer = MortalClient(self.client, death)
        self.incarnations.append(writer)
        client: Client = writer  # type: ignore[assignment] # the rest of it writers never use
        controller = Controller(self.client, client, Settings(), namespaces=(self.namespace,))
        tasks: list[asyncio.Task[Any]] = [asyncio.create_task(controller.follow())]
        try:
            await controller.synced()
            tasks.append(asyncio.create_task(controller.lead()))
            died = asyncio.create_task(writer.dead.wait())
            tasks.append(died)
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            assert died.done(), "the controller ended by itself"
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def mortal_operator(client: Client, namespace: str, death: Death) -> AsyncIterator[Mortal]:
    """An operator of a namespace that dies, and lives on, for as long as the block."""
    mortal = Mortal(client, namespace, death)
    living = asyncio.create_task(mortal.live())
    try:
        yield mortal
        assert not living.done(), living.exception()
    finally:
        living.cancel()
        with suppress(asyncio.CancelledError):
            await living
