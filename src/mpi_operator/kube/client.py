"""What every cluster can do, real or in memory.

`Client` is the seam of the program: the controller is written against it and does not know whether
an API server over HTTP or a cluster in this process answers. What it promises is written down as
tests (`tests/contract/`), which run against every implementation.

Objects travel as manifests. Where many of them travel (pages of a list, events of a watch) they
stay undecoded bytes, because only the reader knows which fields are worth keeping.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from enum import StrEnum
from typing import Protocol

import msgspec

from . import errors
from .json_depth import decoded
from .resources import Manifest, Resource

# The annotation of the bookmark that closes a streamed list.
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class EventType(StrEnum):
    """What a watch can say about an object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    ERROR = "ERROR"  # on the wire only: a client raises it, it never yields it


class Propagation(StrEnum):
    """What becomes of the objects that the deleted one owns."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class Selector(msgspec.Struct, frozen=True, kw_only=True):
    """Which objects of a collection: all of them, unless labels or fields are asked for."""

    labels: str = ""
    fields: str = ""


class WatchOptions(Selector, frozen=True, kw_only=True):
    """Which changes to watch, from where, and for how many seconds."""

    resource_version: str = ""
    initial_events: bool = False
    timeout: float | None = None


class DeleteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which object of that name to delete, how fast, and what becomes of those it owns."""

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
    """One line of a watch. `object` is decoded when it is asked for, `raw` never is."""

    type: EventType
    raw: msgspec.Raw = msgspec.field(name="object")

    @property
    def object(self) -> Manifest:
        return decode_manifest(self.raw)


class Page(msgspec.Struct, frozen=True):
    """A part of a list: undecoded objects, and the version of the collection they belong to."""

    items: list[msgspec.Raw]
    resource_version: str
    is_last: bool


class Listing(msgspec.Struct, frozen=True):
    """A whole list, decoded."""

    items: list[Manifest]
    resource_version: str


class Client(Protocol):
    """A cluster that can be asked and told.

    Every method raises the errors of `kube.errors`. An empty `namespace` means all of them where
    many objects are meant, and none where the kind has no namespaces. Close a generator that is
    not read to its end (`contextlib.aclosing`): it holds a connection.
    """

    async def create(self, resource: Resource, manifest: Manifest) -> Manifest:
        """Store a new object, in the namespace it names; AlreadyExists where the name is taken."""
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
        """The objects of one moment, a page at a time; Gone when that moment is too long ago."""
        ...

    async def list(
        self, resource: Resource, namespace: str = "", selector: Selector = Selector()
    ) -> Listing:
        """The objects of one moment, all at once."""
        ...

    def watch(
        self, resource: Resource, namespace: str = "", options: WatchOptions = WatchOptions()
    ) -> AsyncGenerator[WatchEvent, None]:
        """Changes after `resource_version`, and bookmarks, until `timeout` or the server's own end.

        With `initial_events` the stream begins with what there is, as ADDED events, closed by a
        bookmark with the annotation `k8s.io/initial-events-end`; Invalid where a server cannot.
        """
        ...

    async def replace(
        self, resource: Resource, manifest: Manifest, *, subresource: str = ""
    ) -> Manifest:
        """Store the object as given; with a resourceVersion in it, only if that is the latest."""
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
        """Delete one object; Conflict where it has another `uid` or `resource_version`."""
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
    """An object from its JSON; Undecodable where it is none."""
    try:
        return decoded(_decode, raw)
    except errors.MALFORMED as error:
        raise errors.Undecodable(f"not a Kubernetes object: {error}") from error


_decode = msgspec.json.Decoder(Manifest).decode
