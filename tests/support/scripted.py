"""A client of a cluster in memory that notes what it is asked, and fails as a test tells it to."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import cast

from mpi_operator.kube.client import Client, DeleteOptions, LogOptions
from mpi_operator.kube.errors import ApiError, Status, from_status
from mpi_operator.kube.events import EventRecorder, ObjectReference, Severity
from mpi_operator.kube.resources import PODS, Key, Manifest, Resource
from tests.support.cluster import Cluster


@dataclass(frozen=True)
class Request:
    """What was asked for."""

    verb: str
    resource: Resource
    name: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource.kind} {self.name}"


def refused(code: int, message: str = "no", reason: str = "") -> ApiError:
    """What the server says."""
    return from_status(Status(message, reason, code))


class ScriptedClient:
    """Answers after a moment, in the order it is asked."""

    def __init__(self, cluster: Cluster) -> None:
        self.requests: list[Request] = []
        self.under_way = 0
        self.busiest = 0
        self.takes = 0.01
        # Called before and after a request is done; whatever they raise is the answer.
        self.answer: Callable[[Request], None] = _nothing
        self.landed: Callable[[Request], None] = _nothing
        self.printed = b""  # by any pod
        self.logs: list[LogOptions] = []  # that were asked for
        self._cluster = cluster

    @property
    def as_client(self) -> Client:
        return cast("Client", self)

    @property
    def asked(self) -> list[str]:
        return [str(request) for request in self.requests]

    def refuse(self, what: str, error: Exception) -> None:
        """Answer so to every request that begins with this, such as `create Pod`."""
        before = self.answer

        def answer(request: Request) -> None:
            before(request)
            if str(request).startswith(what):
                raise error

        self.answer = answer

    def relent(self) -> None:
        """Refuse nothing any more."""
        self.answer = self.landed = _nothing

    async def create(self, resource: Resource, manifest: Manifest) -> Manifest:
        request = await self._ask("create", resource, manifest["metadata"]["name"])
        stored = self._cluster.create(resource, manifest)
        self.landed(request)
        return stored

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Manifest:
        await self._ask("get", resource, name)
        return self._cluster.get(resource, Key(namespace, name))

    async def patch(
        self, resource: Resource, name: str, patch: Manifest, namespace: str = ""
    ) -> Manifest:
        request = await self._ask("patch", resource, name)
        stored = self._cluster.merge(resource, Key(namespace, name), patch)
        self.landed(request)
        return stored

    async def replace(
        self, resource: Resource, manifest: Manifest, *, subresource: str = ""
    ) -> Manifest:
        verb = f"replace {subresource} of" if subresource else "replace"
        request = await self._ask(verb, resource, manifest["metadata"]["name"])
        stored = self._cluster.replace(resource, manifest, subresource)
        self.landed(request)
        return stored

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        options: DeleteOptions = DeleteOptions(),
    ) -> None:
        request = await self._ask("delete", resource, name)
        by_force = options.grace_period_seconds == 0
        self._cluster.delete(resource, Key(namespace, name), uid=options.uid, by_force=by_force)
        self.landed(request)

    async def log(
        self, name: str, namespace: str, options: LogOptions
    ) -> AsyncGenerator[bytes, None]:
        await self._ask(f"log {options.container} of", PODS, name)
        self.logs.append(options)
        for line in self.printed.splitlines():
            yield line

    async def _ask(self, verb: str, resource: Resource, name: str) -> Request:
        request = Request(verb, resource, name)
        self.requests.append(request)
        self.under_way += 1
        self.busiest = max(self.busiest, self.under_way)
        try:
            await asyncio.sleep(self.takes)
        finally:
            self.under_way -= 1
        self.answer(request)
        return request


def _nothing(request: Request) -> None:
    """All is well."""


class Diary:
    """Notes events instead of sending them."""

    def __init__(self) -> None:
        self.events: list[str] = []  # their reasons
        self.messages: list[str] = []

    def record(
        self, regarding: ObjectReference, severity: Severity, reason: str, message: str
    ) -> None:
        self.events.append(reason)
        self.messages.append(message)

    @property
    def as_recorder(self) -> EventRecorder:
        return cast("EventRecorder", self)
