"""The client for a Kubernetes API server.

Each verb takes three steps: `requests` builds the request, `sender` retries it until it is
answered, `transport` sends it. There is no code for any kind of object.

    async with HttpClient(config.load()) as client:
        pod = await client.get(PODS, "web-0", "default")
"""

import asyncio
import copy
import math
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Self, TypeVar

import aiohttp
import msgspec

from . import errors, requests
from .client import (
    DeleteOptions,
    EventType,
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
from .config import Config, Credential
from .json_depth import decoded
from .leader_election.fence import Fence
from .lines import LineSplitter
from .metrics import Metrics
from .noop_metrics import NOOP_METRICS
from .requests import Request
from .resources import Manifest, Resource
from .sender import Sender
from .transport import Timeouts, Transport

T = TypeVar("T")


class _ListMetadata(msgspec.Struct, frozen=True):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    token: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct, frozen=True):
    metadata: _ListMetadata
    items: list[msgspec.Raw] | None = None


_decode_list = msgspec.json.Decoder(_List).decode
_decode_event = msgspec.json.Decoder(WatchEvent).decode


class HttpClient:
    """`Client` over HTTP. A context manager, for the event loop on which it was entered."""

    def __init__(
        self,
        config: Config,
        *,
        timeouts: Timeouts | None = None,
        metrics: Metrics | None = None,
        concurrency: int = 64,
        user_agent: str = "mpi-operator",
    ) -> None:
        """At most `concurrency` calls run at once, not counting open watches and logs."""
        self.config = config
        self._timeouts = timeouts or Timeouts()
        self._transport = Transport(config, self._timeouts, user_agent)
        self._sender = Sender(
            config.credentials,
            self._timeouts,
            metrics or NOOP_METRICS,
            # Without a limit, a thousand pods at once are a thousand TLS handshakes at once.
            slots=asyncio.Semaphore(concurrency),
        )

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._transport.__aexit__()

    def fenced_by(self, fence: Fence) -> Self:
        """The same client over the same connections, writing only while the fence allows it."""
        if self._timeouts.unacknowledged >= fence.grace:
            raise ValueError(
                f"a write may arrive {self._timeouts.unacknowledged:g}s after it was sent, and "
                f"another leader may write after {fence.grace:g}s: make the lease longer"
            )
        fenced = copy.copy(self)
        fenced._sender = self._sender.fenced_by(fence)
        return fenced

    async def create(
        self, resource: Resource, manifest: Manifest, *, subresource: str = ""
    ) -> Manifest:
        return await self._object(requests.create(resource, manifest, subresource))

    async def get(
        self, resource: Resource, name: str, namespace: str = "", *, subresource: str = ""
    ) -> Manifest:
        return await self._object(requests.get(resource, name, namespace, subresource))

    async def pages(
        self,
        resource: Resource,
        namespace: str = "",
        selector: Selector = Selector(),
        *,
        limit: int = 500,
    ) -> AsyncGenerator[Page, None]:
        token = ""
        while True:
            request = requests.page(resource, namespace, selector, limit, token)
            listed = _checked(request, _decode_list, await self._body(request))
            token = listed.metadata.token
            yield Page(listed.items or [], listed.metadata.resource_version)
            if not token:
                return

    async def list(
        self, resource: Resource, namespace: str = "", selector: Selector = Selector()
    ) -> Listing:
        return await read_all(self.pages(resource, namespace, selector))

    async def watch(
        self, resource: Resource, namespace: str = "", options: WatchOptions = WatchOptions()
    ) -> AsyncGenerator[WatchEvent, None]:
        request = requests.watch(resource, namespace, options)
        async with aclosing(self._lines(request, self._timeouts.silence)) as stream:
            async for lines in stream:
                for line in lines:
                    event = _checked(request, _decode_event, line)
                    if event.type is EventType.ERROR:
                        raise errors.from_watch_error(event.raw)
                    yield event

    async def replace(
        self, resource: Resource, manifest: Manifest, *, subresource: str = ""
    ) -> Manifest:
        return await self._object(requests.replace(resource, manifest, subresource))

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Manifest,
        namespace: str = "",
        *,
        subresource: str = "",
    ) -> Manifest:
        return await self._object(requests.patch(resource, name, patch, namespace, subresource))

    async def apply(
        self,
        resource: Resource,
        manifest: Manifest,
        *,
        manager: str,
        force: bool = False,
        is_dry_run: bool = False,
        subresource: str = "",
    ) -> Manifest:
        """Server-side apply of these fields as `manager`; creates the object if needed.

        Conflict if another manager owns one of them, unless `force` is given. A dry run returns the
        object that would be stored.
        """
        options = requests.ApplyOptions(manager, force=force, is_dry_run=is_dry_run)
        return await self._object(requests.apply(resource, manifest, options, subresource))

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        options: DeleteOptions = DeleteOptions(),
    ) -> None:
        await self._body(requests.delete(resource, name, namespace, options))

    async def delete_collection(
        self,
        resource: Resource,
        namespace: str = "",
        selector: Selector = Selector(),
        *,
        propagation: Propagation = Propagation.BACKGROUND,
    ) -> None:
        await self._body(requests.delete_collection(resource, namespace, selector, propagation))

    async def log(
        self, name: str, namespace: str, options: LogOptions = LogOptions()
    ) -> AsyncGenerator[bytes, None]:
        request = requests.log(name, namespace, options)
        # A program whose log is followed may print nothing for any time, also at first.
        silence = math.inf if options.follow else self._timeouts.read
        async with aclosing(self._lines(request, silence)) as stream:
            async for lines in stream:
                for line in lines:
                    yield line

    async def raw(self, path: str) -> bytes:
        """The body of the answer at a path: versions, discovery, health."""
        return await self._body(requests.raw(path))

    async def _object(self, request: Request) -> Manifest:
        return _checked(request, decode_manifest, await self._body(request))

    async def _body(self, request: Request) -> bytes:
        async def attempt(credential: Credential, time_limit: float) -> tuple[int, bytes]:
            return await self._transport.send(request, credential, time_limit)

        return await self._sender.send(request, attempt)

    async def _lines(
        self, request: Request, silence: float
    ) -> AsyncGenerator[Sequence[bytes], None]:
        """The lines of a stream, as many at a time as have arrived."""
        async with AsyncExitStack() as stack:

            async def attempt(
                credential: Credential, time_limit: float
            ) -> tuple[int, aiohttp.StreamReader]:
                # Opening is retried like any read; the reader handles later errors.
                opening = math.inf if silence == math.inf else time_limit
                return await stack.enter_async_context(
                    self._transport.stream(request, credential, opening, silence)
                )

            content = await self._sender.open(request, attempt)
            splitter = LineSplitter()
            async for chunk in content.iter_any():
                yield splitter.feed(chunk)
            if splitter.rest:
                yield [splitter.rest]


def _checked(request: Request, decode: Callable[[bytes | msgspec.Raw], T], body: bytes) -> T:
    try:
        return decoded(decode, body)
    except (errors.Undecodable, *errors.MALFORMED) as error:
        raise errors.Undecodable(
            f"{request.verb} {request.path}: the response does not conform to the Kubernetes API: "
            f"{error}"
        ) from error
