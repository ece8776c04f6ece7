"""One Lease in this process, and clients that reach it over a link that may fail.

It behaves as an API server does where elections care: a write with an old resourceVersion is
refused, a watch goes on from a version, and a request that has left arrives even when its sender no
longer waits for the answer.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from copy import deepcopy
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from mpi_operator.kube import errors
from mpi_operator.kube.client import EventType, WatchEvent, WatchOptions
from mpi_operator.kube.resources import Manifest, Resource

T = TypeVar("T")


class LeaseStore:
    """What the server knows."""

    def __init__(self, lease: Manifest | None = None) -> None:
        self.version = 1
        self.lease: Manifest | None = None
        self._watchers: set[asyncio.Queue[WatchEvent]] = set()
        if lease is not None:
            self.create(lease)

    @property
    def holder(self) -> str:
        return str(self.lease["spec"]["holderIdentity"]) if self.lease else ""

    def get(self) -> Manifest:
        if self.lease is None:
            raise errors.NotFound(errors.Status("no such lease"))
        return deepcopy(self.lease)

    def create(self, lease: Manifest) -> Manifest:
        if self.lease is not None:
            raise errors.AlreadyExists(errors.Status("there is one"))
        return self._store(EventType.ADDED, lease)

    def replace(self, lease: Manifest) -> Manifest:
        if self.get()["metadata"]["resourceVersion"] != lease["metadata"]["resourceVersion"]:
            raise errors.Conflict(errors.Status("another client wrote it"))
        return self._store(EventType.MODIFIED, lease)

    def delete(self) -> None:
        self._tell(EventType.DELETED, self.get())
        self.lease = None

    def events_after(self, version: str) -> "asyncio.Queue[WatchEvent]":
        """What a watch from that version gets to see, from now on."""
        queue: asyncio.Queue[WatchEvent] = asyncio.Queue()
        self._watchers.add(queue)
        if self.lease is not None and self.lease["metadata"]["resourceVersion"] != version:
            queue.put_nowait(_event(EventType.MODIFIED, self.lease))
        return queue

    def _store(self, change: EventType, lease: Manifest) -> Manifest:
        self.version += 1
        metadata = lease["metadata"] | {"resourceVersion": str(self.version)}
        self.lease = deepcopy(lease) | {"metadata": metadata}
        self._tell(change, self.lease)
        return self.get()

    def _tell(self, change: EventType, lease: Manifest) -> None:
        for queue in self._watchers:
            queue.put_nowait(_event(change, lease))


class Fault(StrEnum):
    """How a line can fail."""

    REFUSE = "connections are refused and break"
    LOSE_REQUESTS = "requests never arrive"
    LOSE_ANSWERS = "answers and events never arrive"
    HOLD_REQUESTS = "requests arrive late, when the fault is over"
    HOLD_ANSWERS = "so do answers"


@dataclass
class Line:
    """The link between one client and the store, with its current fault."""

    latency: Callable[[], float] = lambda: 0.0
    fault: Fault | None = None
    held_at_most: float = float("inf")
    _on_the_way: set["asyncio.Future[Any]"] = field(default_factory=set)
    _repaired: asyncio.Event = field(default_factory=asyncio.Event)

    def break_down(self, fault: Fault) -> None:
        self.fault = fault
        self._repaired.clear()

    def repair(self) -> None:
        self.fault = None
        self._repaired.set()

    async def carry(self, call: Callable[[], T]) -> T:
        """Call the store. The request arrives even when its caller has stopped waiting."""
        request = asyncio.ensure_future(self._travel(call))
        self._on_the_way.add(request)
        request.add_done_callback(self._forget)
        return await asyncio.shield(request)

    async def _travel(self, call: Callable[[], T]) -> T:
        if self.fault is Fault.REFUSE:
            raise errors.NotSent("connection refused")
        if self.fault is Fault.LOSE_REQUESTS:
            await asyncio.Event().wait()
        if self.fault is Fault.HOLD_REQUESTS:
            async with asyncio.timeout(self.held_at_most):
                await self._repaired.wait()
        await asyncio.sleep(self.latency())
        answer = call()
        await asyncio.sleep(self.latency())
        if self.fault is Fault.LOSE_ANSWERS:
            await asyncio.Event().wait()
        if self.fault is Fault.HOLD_ANSWERS:
            await self._repaired.wait()
        return answer

    def _forget(self, request: "asyncio.Future[Any]") -> None:
        self._on_the_way.discard(request)
        if not request.cancelled():
            request.exception()  # retrieve it: the caller may have stopped waiting


class LeaseClient:
    """As much of a `Client` as an election needs."""

    def __init__(self, store: LeaseStore, line: Line | None = None) -> None:
        self.store = store
        self.line = line or Line()
        self.watches = 0

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Manifest:
        return await self.line.carry(self.store.get)

    async def create(self, resource: Resource, manifest: Manifest) -> Manifest:
        return await self.line.carry(lambda: self.store.create(manifest))

    async def replace(self, resource: Resource, manifest: Manifest) -> Manifest:
        return await self.line.carry(lambda: self.store.replace(manifest))

    async def watch(
        self,
        resource: Resource,
        namespace: str = "",
        options: WatchOptions = WatchOptions(),
    ) -> AsyncGenerator[WatchEvent, None]:
        self.watches += 1
        events = await self.line.carry(lambda: self.store.events_after(options.resource_version))
        while True:
            event = await events.get()
            await asyncio.sleep(self.line.latency())
            if self.line.fault is Fault.REFUSE:
                raise errors.ConnectionLost("the watch broke")
            if self.line.fault is None:
                yield event


def _event(change: EventType, lease: Manifest) -> WatchEvent:
    return WatchEvent(change, msgspec.Raw(msgspec.json.encode(lease)))
