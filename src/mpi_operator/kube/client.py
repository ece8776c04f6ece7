"""The interface of every cluster, real or in memory.

The controller uses a `Client` and does not know whether an API server or a cluster in this process
answers. The tests in `tests/contract/` specify it and run against every implementation.

Objects are passed as manifests. In lists and watches they stay undecoded bytes, because only the
reader knows which fields to keep.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from enum import StrEnum
from typing import Protocol

import msgspec

from . import errors
from .json_depth import decoded
from .resources import Manifest, Resource

# The annotation of the bookmark that ends a streamed list.
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class EventType(StrEnum):
    """The type of a watch event."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    ERROR = "ERROR"  # on the wire only: a client raises it as an error


class Propagation(StrEnum):
    """How deletion treats the objects that the deleted one owns."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class Selector(msgspec.Struct, frozen=True, kw_only=True):
    """Which objects of a collection: by label selector and field selector, or all."""

    labels: str = ""
    fields: str = ""


class WatchOptions(Selector, frozen=True, kw_only=True):
    """Which changes to watch, from which version, and for how many seconds."""

    resource_version: str = ""
    initial_events: bool = False
    timeout: float | None = None


class DeleteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Preconditions of a deletion, its grace period, and how it treats dependents."""

    uid: str = ""
    resource_version: str = ""
    grace_period_seconds: int | None = None
    propagation: Propagation = Propagation.BACKGROUND


class LogOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which lines of which container."""

    container: str = ""
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since_seconds: int | None = None
    limit_bytes: int | None = None


class WatchEvent(msgspec.Struct, frozen=True):
    """One event of a watch. `object` is decoded on access, `raw` never."""

    type: EventType
    raw: msgspec.Raw = msgspec.field(name="object")

    @property
    def object(self) -> Manifest:
        return decode_manifest(self.raw)


class Page(msgspec.Struct, frozen=True):
    """A part of a list: undecoded objects, and the version of the collection."""

    items: list[msgspec.Raw]
    resource_version: str


class Listing(msgspec.Struct, frozen=True):
    """A whole list, decoded."""

    items: list[Manifest]
    resource_version: str


class Client(Protocol):
    """A client of a cluster.

    Every method raises the errors of `kube.errors`. An empty `namespace` means all namespaces for
    a collection, and none for a cluster-scoped object. Close a generator that is not read to its
    end (`contextlib.aclosing`): it holds a connection.
    """

    async def create(self, resource: Resource, manifest: Manifest) -> Manifest:
        """Create an object in the namespace of its metadata; AlreadyExists if the name is taken."""
        ...

    async def get(
        self, resource: Resource, name: str, namespace: str = "", *, subresource: str = ""
    ) -> Manifest: ...

    def pages(
        self,
        resource: Resource,
        namespace: str = "",
        selector: Selector = Selector(),
        *,
        limit: int = 500,
    ) -> AsyncGenerator[Page, None]:
        """A consistent list, a page at a time; Gone if reading it takes too long."""
        ...

    async def list(
        self, resource: Resource, namespace: str = "", selector: Selector = Selector()
    ) -> Listing:
        """A consistent list, all at once."""
        ...

    def watch(
        self, resource: Resource, namespace: str = "", options: WatchOptions = WatchOptions()
    ) -> AsyncGenerator[WatchEvent, None]:
        """Changes after `resource_version`, and bookmarks, until `timeout` or the server ends it.

        With `initial_events` the stream begins with all objects as ADDED events, ended by a
        bookmark with the annotation `k8s.io/initial-events-end`; Invalid if a server cannot.
        """
        ...

    async def replace(
        self, resource: Resource, manifest: Manifest, *, subresource: str = ""
    ) -> Manifest:
        """Replace an object; Conflict if it has a resourceVersion that is not the latest."""
        ...

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Manifest,
        namespace: str = "",
        *,
        subresource: str = "",
    ) -> Manifest:
        """Merge a patch into an object (RFC 7386): null removes a field."""
        ...

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        options: DeleteOptions = DeleteOptions(),
    ) -> None:
        """Delete one object; Conflict if it has another `uid` or `resource_version`."""
        ...

    async def delete_collection(
        self,
        resource: Resource,
        namespace: str = "",
        selector: Selector = Selector(),
        *,
        propagation: Propagation = Propagation.BACKGROUND,
    ) -> None:
        """Delete every object that the selector matches."""
        ...

    def log(
        self, name: str, namespace: str, options: LogOptions = LogOptions()
    ) -> AsyncGenerator[bytes, None]:
        """The lines that a container of a pod printed, without their line ends.

        `limit_bytes` counts from the first line: the last one may be cut, or missing.
        """
        ...


async def read_all(pages: AsyncGenerator[Page, None]) -> Listing:
    """A whole list from its pages."""
    items: list[Manifest] = []
    version = ""
    async with aclosing(pages):
        async for page in pages:
            items.extend(map(decode_manifest, page.items))
            version = page.resource_version
    return Listing(items, version)


def decode_manifest(raw: bytes | msgspec.Raw) -> Manifest:
    """An object from its JSON; Undecodable if it is not one."""
    try:
        return decoded(_decode, raw)
    except errors.MALFORMED as error:
        raise errors.Undecodable(f"not a Kubernetes object: {error}") from error


_decode = msgspec.json.Decoder(Manifest).decode
