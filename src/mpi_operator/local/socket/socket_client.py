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
    DeleteOptions,
    Listing,
    LogOptions,
    Page,
    Propagation,
    Selector,
    WatchEvent,
    WatchOptions,
    decode_manifest,
    read_all,
)
from mpi_operator.kube.resources import Manifest, Resource
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
        resource.key_of(manifest)
        return await self._object(socket_messages.Create(resource, manifest))

    async def get(
        self, resource: Resource, name: str, namespace: str = "", *, subresource: str = ""
    ) -> Manifest:
        resource.path(name, namespace)
        return await self._object(socket_messages.Get(resource, name, namespace, subresource))

    async def pages(
        self,
        resource: Resource,
        namespace: str = "",
        selector: Selector = Selector(),
        *,
        limit: int = 500,
    ) -> AsyncGenerator[Page, None]:
        request = socket_messages.Pages(resource, namespace, selector, limit)
        async with aclosing(self._items(request)) as items:
            async for item in items:
                yield _page(item)

    async def list(
        self, resource: Resource, namespace: str = "", selector: Selector = Selector()
    ) -> Listing:
        return await read_all(self.pages(resource, namespace, selector))

    async def watch(
        self, resource: Resource, namespace: str = "", options: WatchOptions = WatchOptions()
    ) -> AsyncGenerator[WatchEvent, None]:
        request = socket_messages.Watch(resource, namespace, options)
        async with aclosing(self._items(request)) as items:
            async for item in items:
                yield _event(item)

    async def replace(
        self, resource: Resource, manifest: Manifest, *, subresource: str = ""
    ) -> Manifest:
        namespace, name = resource.key_of(manifest)
        resource.path(name, namespace)
        return await self._object(socket_messages.Replace(resource, manifest, subresource))

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Manifest,
        namespace: str = "",
        *,
        subresource: str = "",
    ) -> Manifest:
        resource.path(name, namespace)
        return await self._object(
            socket_messages.Patch(resource, name, patch, namespace, subresource)
        )

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        options: DeleteOptions = DeleteOptions(),
    ) -> None:
        resource.path(name, namespace)
        await self._item(socket_messages.Delete(resource, name, namespace, options))

    async def delete_collection(
        self,
        resource: Resource,
        namespace: str = "",
        selector: Selector = Selector(),
        *,
        propagation: Propagation = Propagation.BACKGROUND,
    ) -> None:
        await self._item(
            socket_messages.DeleteCollection(resource, namespace, selector, propagation)
        )

    async def log(
        self, name: str, namespace: str, options: LogOptions = LogOptions()
    ) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._items(socket_messages.Log(name, namespace, options))) as items:
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
