"""The cluster of another process of this user, through the socket of its run.

Every call has a connection of its own, so calls never wait for each other and a stream ends with
its connection. `server` is the other side.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import UNSET, Raw

from mpi_operator.kube import errors
from mpi_operator.kube.client import (
    JsonPatch,
    Listing,
    Page,
    Propagation,
    WatchEvent,
    decode_manifest,
)
from mpi_operator.kube.resources import Manifest, Resource
from mpi_operator.local.apiserver import object_names
from mpi_operator.local.socket_address import address

from . import socket_messages

_Connection: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_page = msgspec.json.Decoder(Page).decode
_event = msgspec.json.Decoder(WatchEvent).decode
_bytes = msgspec.json.Decoder(bytes).decode


class RemoteCluster:
    """A `kube.client.Client` of the run in a directory; NotSent where nobody is there."""

    def __init__(self, run: Path) -> None:
        self.run = run

    async def create(self, resource: Resource, manifest: Manifest) -> Manifest:
        object_names.home(resource, manifest)
        return await self._object(socket_messages.Create(resource=resource, manifest=manifest))

    async def get(
        self, resource: Resource, name: str, namespace: str = "", *, subresource: str = ""
    ) -> Manifest:
        resource.path(name, namespace)
        return await self._object(
            socket_messages.Get(
                resource=resource, name=name, namespace=namespace, subresource=subresource
            )
        )

    async def pages(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 500,
    ) -> AsyncGenerator[Page, None]:
        request = socket_messages.Pages(
            resource=resource,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            limit=limit,
        )
        async with aclosing(self._items(request)) as items:
            async for item in items:
                yield _page(item)

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> Listing:
        pages = self.pages(
            resource, namespace, label_selector=label_selector, field_selector=field_selector
        )
        found, version = [], ""
        async with aclosing(pages):
            async for page in pages:
                found += [decode_manifest(raw) for raw in page.items]
                version = page.resource_version
        return Listing(found, version)

    async def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        initial_events: bool = False,
        timeout: float | None = None,
    ) -> AsyncGenerator[WatchEvent, None]:
        request = socket_messages.Watch(
            resource=resource,
            namespace=namespace,
            resource_version=resource_version,
            label_selector=label_selector,
            field_selector=field_selector,
            initial_events=initial_events,
            timeout=timeout,
        )
        async with aclosing(self._items(request)) as items:
            async for item in items:
                yield _event(item)

    async def replace(
        self, resource: Resource, manifest: Manifest, *, subresource: str = ""
    ) -> Manifest:
        namespace, name = object_names.home(resource, manifest)
        resource.path(name, namespace)
        return await self._object(
            socket_messages.Replace(resource=resource, manifest=manifest, subresource=subresource)
        )

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Manifest | JsonPatch,
        namespace: str = "",
        *,
        subresource: str = "",
    ) -> Manifest:
        resource.path(name, namespace)
        return await self._object(
            socket_messages.Patch(
                resource=resource,
                name=name,
                patch=patch if isinstance(patch, dict) else [*patch],
                namespace=namespace,
                subresource=subresource,
            )
        )

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        grace_period_seconds: int | None = None,
        propagation: Propagation = Propagation.BACKGROUND,
    ) -> None:
        resource.path(name, namespace)
        await self._item(
            socket_messages.Delete(
                resource=resource,
                name=name,
                namespace=namespace,
                uid=uid,
                resource_version=resource_version,
                grace_period_seconds=grace_period_seconds,
                propagation=propagation,
            )
        )

    async def delete_collection(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        propagation: Propagation = Propagation.BACKGROUND,
    ) -> None:
        await self._item(
            socket_messages.DeleteCollection(
                resource=resource,
                namespace=namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                propagation=propagation,
            )
        )

    async def log(
        self,
        name: str,
        namespace: str,
        *,
        container: str = "",
        follow: bool = False,
        previous: bool = False,
        timestamps: bool = False,
        tail_lines: int | None = None,
        since_seconds: int | None = None,
        limit_bytes: int | None = None,
    ) -> AsyncGenerator[bytes, None]:
        request = socket_messages.Log(
            name=name,
            namespace=namespace,
            container=container,
            follow=follow,
            previous=previous,
            timestamps=timestamps,
            tail_lines=tail_lines,
            since_seconds=since_seconds,
            limit_bytes=limit_bytes,
        )
        async with aclosing(self._items(request)) as items:
            async for item in items:
                yield _bytes(item)

    async def _object(self, request: socket_messages.AnyRequest) -> Manifest:
        return decode_manifest(await self._item(request))

    async def _item(self, request: socket_messages.AnyRequest) -> Raw:
        """The one thing that is answered."""
        answered = [item async for item in self._items(request)]
        if len(answered) != 1:
            raise errors.Undecodable(f"{len(answered)} answers to one question")
        return answered[0]

    async def _items(self, request: socket_messages.AnyRequest) -> AsyncGenerator[Raw, None]:
        """What is answered; the errors of `kube.errors` where that ends badly."""
        line = socket_messages.encode(request) + b"\n"
        reader, writer = await self._connected()
        try:
            writer.write(line)
            while (answer := await self._answer(reader)).end is UNSET:
                yield answer.item or Raw(b"null")
            if answer.end.code or answer.end.message:
                raise errors.from_status(answer.end)
        finally:
            writer.close()

    async def _connected(self) -> _Connection:
        try:
            with address(self.run, socket_messages.SOCKET) as place:
                return await asyncio.open_unix_connection(
                    place, limit=socket_messages.LONGEST_ANSWER
                )
        except OSError as error:
            raise errors.NotSent(f"run {self.run.name} does not answer: {error}") from error

    async def _answer(self, reader: asyncio.StreamReader) -> socket_messages.Answer:
        try:
            line = await reader.readline()
        except (OSError, ValueError) as error:
            raise errors.ConnectionLost(f"run {self.run.name}: {error}") from error
        if not line.endswith(b"\n"):
            raise errors.ConnectionLost(f"run {self.run.name} has ended")
        try:
            return socket_messages.decode_answer(line)
        except errors.MALFORMED as error:
            raise errors.Undecodable(f"run {self.run.name}: {error}") from error
