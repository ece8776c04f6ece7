"""The cache of a collection: its store, its version, and the handlers of changes.

No I/O. Objects come from three sources, in any order:

* a *census*: all objects at one version; objects that are not in it are gone,
* the *watch*: changes after that version, in order,
* our own *writes*: the answers of the server, which arrive before the watch events.

Handlers get each change once, when a census or the watch reports it.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

import msgspec

from . import errors
from .go_json import decoded_as_go
from .interning import Interner
from .json_depth import decoded
from .noop_metrics import NOOP_METRICS
from .objects import Metadata, Object, is_newer
from .resources import Key, Manifest, Resource
from .store import Index, WritableStore

if TYPE_CHECKING:
    from .metrics import Metrics

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)
V = TypeVar("V")


@dataclass(frozen=True)
class Change(Generic[T]):
    """An object before and after a change. Without `old` it is new, without `new` it is gone."""

    old: T | None
    new: T | None


Handler = Callable[[Change[T]], None]


@dataclass(frozen=True)
class Unreadable:
    """An object that cannot be decoded: it is not in the store, but it exists."""

    metadata: Metadata
    why: str


class Cache(Generic[T]):
    """The objects of one collection as last seen."""

    def __init__(
        self,
        resource: Resource,
        kind: type[T],
        *,
        indexes: Mapping[str, Index[T]] | None = None,
        metrics: "Metrics | None" = None,
    ) -> None:
        metrics = metrics or NOOP_METRICS
        self.store = WritableStore(indexes)
        self.version = ""  # the store includes all changes up to here; "" if a census is needed
        self._furthest = ""
        self._resource = resource
        self._decode = msgspec.json.Decoder(kind).decode
        self._interner = Interner()
        self._handlers: list[Handler[T]] = []
        self.unreadable: dict[Key, Unreadable] = {}
        self._on_unreadable: list[Callable[[Unreadable], None]] = []
        # Own writes that the watch has not reported yet, with the object that handlers got last.
        self._unconfirmed: dict[Key, T | None] = {}
        self._size = metrics.cached_objects.labels(str(resource))
        self._undecodable = metrics.undecodable.labels(str(resource))

    def on_change(self, handler: Handler[T]) -> None:
        """Call `handler` with every change from now on. It must not block."""
        self._handlers.append(handler)

    def on_unreadable(self, handler: Callable[[Unreadable], None]) -> None:
        """Call `handler` with every object that cannot be decoded. It must not block."""
        self._on_unreadable.append(handler)

    def saw(self, raw: msgspec.Raw) -> Metadata:
        """Store an object that a census or the watch reported."""
        try:
            new = self._interner.intern(decoded_as_go(self._decode, raw))
        except errors.MALFORMED as error:
            return self._skip(raw, error)
        metadata = new.metadata
        if not (metadata.name and metadata.resource_version):
            raise errors.Undecodable("the server sent an object without a name or a version")
        if not self.store.has_newer(metadata.key, metadata.resource_version):
            self._put(metadata.key, new)
        return metadata

    def lost(self, raw: msgspec.Raw) -> Metadata:
        """Remove an object that the watch reported as deleted."""
        metadata = _identity(raw)
        if not self.store.has_newer(metadata.key, metadata.resource_version):
            self._remove(metadata.key)
        return metadata

    def advance(self, version: str) -> None:
        """Set the version: the store includes all changes up to it."""
        self.version = version
        if is_newer(version, self._furthest):
            self._furthest = version

    def wrote(self, manifest: Manifest) -> None:
        """Store the server's answer to a write of ours before the watch reports it.

        Handlers get the change from the watch, so the object must be one that it selects.
        """
        try:
            new = self._interner.intern(decoded_as_go(self._decode, _encode(manifest)))
        except errors.MALFORMED:
            return  # the watch will report it, and it is skipped then
        known = self.store.get(new.metadata.key)
        if not is_newer(new.metadata.resource_version, self._furthest) or (
            known is not None and not _is_later(new, known)
        ):
            return  # the watch was faster, and may know more: a deletion, for example
        self._unconfirmed.setdefault(new.metadata.key, known)
        self._store(new)

    def end_census(self, seen: set[Key], version: str) -> None:
        """Remove the objects that are not in a census of this version, unless they are newer."""
        if not version:
            raise errors.Undecodable(f"{self._resource}: the server sent a list without a version")
        if is_newer(self._furthest, version):
            self._start_over(version)
        for key in self.store.keys_up_to(version) - seen:
            self._remove(key)
        for key in self.unreadable.keys() - seen:
            del self.unreadable[key]
        self.advance(version)

    def expire(self) -> None:
        """Require a census, because the server no longer knows `version`."""
        self.version = ""

    def _start_over(self, version: str) -> NoReturn:
        """Empty the store: versions from before a restored backup cannot be compared."""
        for known in self.store:
            self._remove(known.metadata.key)
        message = f"the server went back from resourceVersion {self._furthest} to {version}"
        self._furthest = ""
        raise errors.Gone(errors.Status(message=f"{message}, as after a restored backup", code=410))

    def _put(self, key: Key, new: T) -> None:
        self.unreadable.pop(key, None)
        old = self.store.get(key)
        unconfirmed = key in self._unconfirmed
        if old is not None and not unconfirmed and _same_version(old, new):
            return
        reported = self._unconfirmed.pop(key) if unconfirmed else old
        self._store(new)
        self._notify(Change(reported, new))

    def _store(self, new: T) -> None:
        before = len(self.store)
        self.store.put(new)
        self._size.inc(len(self.store) - before)

    def _remove(self, key: Key) -> None:
        self.unreadable.pop(key, None)
        old = self.store.remove(key)
        if old is None:
            return
        self._size.dec()
        reported = self._unconfirmed.pop(key, old)
        if reported is not None:
            self._notify(Change(reported, None))

    def _notify(self, change: Change[T]) -> None:
        self._call(self._handlers, change)

    def _call(self, handlers: Iterable[Callable[[V], None]], value: V) -> None:
        for handler in handlers:
            try:
                handler(value)
            except Exception:
                log.exception("Change handler failed", extra={"resource": str(self._resource)})

    def _skip(self, raw: msgspec.Raw, error: Exception) -> Metadata:
        """Keep an object out of the store that cannot be decoded: it must not stop others."""
        metadata = _identity(raw)
        log.warning(
            "Skipped an object that cannot be decoded",
            extra={"resource": str(self._resource), "key": str(metadata.key), "error": str(error)},
        )
        self._undecodable.inc()
        if not self.store.has_newer(metadata.key, metadata.resource_version):
            self._remove(metadata.key)
            self.unreadable[metadata.key] = unreadable = Unreadable(metadata, str(error))
            self._call(self._on_unreadable, unreadable)
        return metadata


class _Identity(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str
    namespace: str = ""
    labels: Any = None


class _Anything(msgspec.Struct):
    metadata: _Identity


_decode_anything = msgspec.json.Decoder(_Anything).decode
_encode = msgspec.json.Encoder().encode


def _identity(raw: msgspec.Raw) -> Metadata:
    """The name and the version of an object, however the rest looks."""
    try:
        found = decoded(_decode_anything, raw).metadata
    except errors.MALFORMED as error:
        raise errors.Undecodable(
            f"the server sent an object without a name or a version: {error}"
        ) from error
    labels = found.labels if isinstance(found.labels, dict) else {}
    return Metadata(
        name=found.name,
        namespace=found.namespace,
        resource_version=found.resource_version,
        labels={name: value for name, value in labels.items() if isinstance(value, str)},
    )


def _same_version(one: Object, other: Object) -> bool:
    return one.metadata.resource_version == other.metadata.resource_version


def _is_later(one: Object, other: Object) -> bool:
    return is_newer(one.metadata.resource_version, other.metadata.resource_version)
