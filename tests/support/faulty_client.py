"""A client of the local cluster that records its requests, and fails where a test wants it."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import cast

from mpi_operator.kube.client import Client, DeleteOptions, LogOptions
from mpi_operator.kube.errors import ApiError, Status, from_status
from mpi_operator.kube.events import EventRecorder, ObjectReference, Severity
from mpi_operator.kube.resources import PODS, Manifest, Resource
from mpi_operator.local.apiserver.cluster import LocalCluster


@dataclass(frozen=True)
class Request:
    """One request to the server."""

    verb: str
    resource: Resource
    name: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource.kind} {self.name}"


def refused(code: int, message: str = "no", reason: str = "") -> ApiError:
    """An error as the server answers it."""
    return from_status(Status(message, reason, code))


class FaultyClient:
    """The writing client of an operator, with hooks around each request."""

    def __init__(self, cluster: LocalCluster, *, takes: float = 0.0) -> None:
        self.requests: list[Request] = []
        self.created: list[tuple[Resource, str]] = []  # what the server has stored, in order
        self.in_flight = 0
        self.most_in_flight = 0
        self.takes = takes  # seconds per request
        # Called before the server sees a request and after it has done it: what they raise is what
        # the operator gets.
        self.before: Callable[[Request], None] = _nothing
        self.after: Callable[[Request], None] = _nothing
        self.logs: list[LogOptions] = []  # that were asked for
        self._cluster = cluster

    @property
    def as_client(self) -> Client:
        return cast("Client", self)

    @property
    def asked(self) -> list[str]:
        return [str(request) for request in self.requests]

    def refuse(self, what: str, error: Exception) -> None:
        """Answer every request that begins with this, such as `create Pod`, with an error."""
        earlier = self.before

        def before(request: Request) -> None:
            earlier(request)
            if str(request).startswith(what):
                raise error

        self.before = before

    def relent(self) -> None:
        """Stop refusing."""
        self.before = self.after = _nothing

    async def create(self, resource: Resource, manifest: Manifest) -> Manifest:
        name = manifest["metadata"]["name"]
        request = await self._ask("create", resource, name)
        stored = await self._cluster.create(resource, manifest)
        self.created.append((resource, name))
        self.after(request)
        return stored

    async def get(
        self, resource: Resource, name: str, namespace: str = "", *, subresource: str = ""
    ) -> Manifest:
        request = await self._ask("get", resource, name)
        found = await self._cluster.get(resource, name, namespace, subresource=subresource)
        self.after(request)
        return found

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Manifest,
        namespace: str = "",
        *,
        subresource: str = "",
    ) -> Manifest:
        request = await self._ask("patch", resource, name)
        stored = await self._cluster.patch(
            resource, name, patch, namespace, subresource=subresource
        )
        self.after(request)
        return stored

    async def replace(
        self, resource: Resource, manifest: Manifest, *, subresource: str = ""
    ) -> Manifest:
        verb = f"replace {subresource} of" if subresource else "replace"
        request = await self._ask(verb, resource, manifest["metadata"]["name"])
        stored = await self._cluster.replace(resource, manifest, subresource=subresource)
        self.after(request)
        return stored

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        options: DeleteOptions = DeleteOptions(),
    ) -> None:
        request = await self._ask("delete", resource, name)
        await self._cluster.delete(resource, name, namespace, options)
        self.after(request)

    async def log(
        self, name: str, namespace: str, options: LogOptions = LogOptions()
    ) -> AsyncGenerator[bytes, None]:
        await self._ask(f"log {options.container} of", PODS, name)
        self.logs.append(options)
        async for line in self._cluster.log(name, namespace, options):
            yield line

    async def _ask(self, verb: str, resource: Resource, name: str) -> Request:
        request = Request(verb, resource, name)
        self.requests.append(request)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self.takes)
        finally:
            self.in_flight -= 1
        self.before(request)
        return request


def _nothing(request: Request) -> None:
    """Do nothing."""


class RecordedEvents:
    """An event recorder that keeps events instead of sending them."""

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.messages: list[str] = []

    def record(
        self, regarding: ObjectReference, severity: Severity, reason: str, message: str
    ) -> None:
        self.reasons.append(reason)
        self.messages.append(message)

    @property
    def as_recorder(self) -> EventRecorder:
        return cast("EventRecorder", self)
