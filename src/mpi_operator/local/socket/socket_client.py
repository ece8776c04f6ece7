"""A `Client` of the cluster in another process of this user, through the socket of its run.

Every request has a connection of its own, so requests never wait for each other and a stream ends
with its connection. `socket_server` is the other side.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import TypeAlias, TypeVar

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

_T = TypeVar("_T")
_Connection: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_page = msgspec.json.Decoder(Page).decode
_event = msgspec.json.Decoder(WatchEvent).decode
_bytes = msgspec.json.Decoder(bytes).decode


class RemoteCluster:
    """A `kube.client.Client` of the run in a directory; NotSent if no process serves it."""

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

    def pages(
        self,
        resource: Resource,
        namespace: str = "",
        selector: Selector = Selector(),
        *,
        limit: int = 500,
    ) -> AsyncGenerator[Page, None]:
        return self._stream(socket_messages.Pages(resource, namespace, selector, limit), _page)

    async def list(
        self, resource: Resource, namespace: str = "", selector: Selector = Selector()
    ) -> Listing:
        return await read_all(self.pages(resource, namespace, selector))

    def watch(
        self, resource: Resource, namespace: str = "", options: WatchOptions = WatchOptions()
    ) -> AsyncGenerator[WatchEvent, None]:
        return self._stream(socket_messages.Watch(resource, namespace, options), _event)

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

    def log(
        self, name: str, namespace: str, options: LogOptions = LogOptions()
    ) -> AsyncGenerator[bytes, None]:
        return self._stream(socket_messages.Log(name, namespace, options), _bytes)

    async def _object(self, request: socket_messages.AnyRequest) -> Manifest:
        return decode_manifest(await self._item(request))

    async def _item(self, request: socket_messages.AnyRequest) -> Raw:
        """The item of a response with exactly one."""
        items = [item async for item in self._stream(request, Raw)]
        if len(items) != 1:
            raise errors.Undecodable(f"run {self.run.name} sent {len(items)} items instead of one")
        return items[0]

    async def _stream(
        self, request: socket_messages.AnyRequest, decode: Callable[[Raw], _T]
    ) -> AsyncGenerator[_T, None]:
        """The decoded items of a response; raises its error, if it ends with one."""
        line = socket_messages.encode(request) + b"\n"
        reader, writer = await self._connect()
        try:
            writer.write(line)
            while (answer := await self._answer(reader)).end is UNSET:
                yield decode(answer.item or Raw(b"null"))
            if answer.end.code or answer.end.message:
                raise errors.from_status(answer.end)
        finally:
            writer.close()

    async def _connect(self) -> _Connection:
        try:
            with address(self.run, socket_messages.SOCKET) as path:
                return await asyncio.open_unix_connection(path, limit=socket_messages.MAX_ANSWER)
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
