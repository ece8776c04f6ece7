"""What is known of a collection: the store, how far it reaches, and who is told of changes.

No I/O here. Objects come in from three sides, in any order:

* a *census*: everything there is at one version; what it does not mention is gone,
* the *watch*: changes after that version, in the order they happened,
* our own *writes*: the server's answers, known before the watch tells of them.

Handlers hear of what the server's stream says, once, and never of the same thing twice.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar

import msgspec

from . import errors
from .interning import Sharing
from .json_depth import decoded
from .noop_metrics import UNMEASURED
from .objects import Metadata, Object, is_newer
from .resources import Key, Manifest, Resource
from .store import Index, WritableStore

if TYPE_CHECKING:
    from .metrics import Metrics

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)


@dataclass(frozen=True)
class Change(Generic[T]):
    """An object before and after. Without `old` it is new, without `new` it is gone."""

    old: T | None
    new: T | None


Handler = Callable[[Change[T]], None]


class Cache(Generic[T]):
    """The objects of one collection as last heard of."""

    def __init__(
        self,
        resource: Resource,
        kind: type[T],
        *,
        indexes: Mapping[str, Index[T]] | None = None,
        metrics: "Metrics | None" = None,
    ) -> None:
        metrics = metrics or UNMEASURED
        self.store = WritableStore(indexes)
        self.version = ""  # everything up to here is in the store; "" when a census is needed
        self._furthest = ""
        self._resource = resource
        self._decode = msgspec.json.Decoder(kind).decode
        self._sharing = Sharing()
        self._handlers: list[Handler[T]] = []
        # Own writes that the stream has not told of yet, with what handlers were last told.
        self._unconfirmed: dict[Key, T | None] = {}
        self._size = metrics.cached_objects.labels(str(resource))
        self._undecodable = metrics.undecodable.labels(str(resource))

    def on_change(self, handler: Handler[T]) -> None:
        """Have `handler` called with every change from now on. It must not block."""
        self._handlers.append(handler)

    def saw(self, raw: msgspec.Raw) -> Metadata:
        """Take in an object as the server has it."""
        try:
            new = self._sharing.share(decoded(self._decode, raw))
        except errors.MALFORMED as error:
            return self._leave_out(raw, error)
        metadata = new.metadata
        if not (metadata.name and metadata.resource_version):
            raise errors.Undecodable("an object without a name or a version")
        if not self.store.has_newer(metadata.key, metadata.resource_version):
            self._put(metadata.key, new)
        return metadata

    def lost(self, raw: msgspec.Raw) -> Metadata:
        """Take in that an object was deleted."""
        metadata = _identity(raw)
        if not self.store.has_newer(metadata.key, metadata.resource_version):
            self._remove(metadata.key)
        return metadata

    def advance(self, version: str) -> None:
        """Everything up to this version has been taken in."""
        self.version = version
        if is_newer(version, self._furthest):
            self._furthest = version

    def wrote(self, manifest: Manifest) -> None:
        """Take in the server's answer to a write of ours, until the watch catches up with it.

        Handlers are told when it does. The object has to be one that the watch will tell of.
        """
        try:
            new = self._sharing.share(decoded(self._decode, _encode(manifest)))
        except errors.MALFORMED:
            return  # it will come with the watch, and be left out there
        known = self.store.get(new.metadata.key)
        if not is_newer(new.metadata.resource_version, self._furthest) or (
            known is not None and not _is_later(new, known)
        ):
            return  # the watch was faster, and may know more: that it is deleted again, say
        self._unconfirmed.setdefault(new.metadata.key, known)
        self._store(new)

    def end_census(self, seen: set[Key], version: str) -> None:
        """Everything at this version has been seen: what was not is gone, if it is not newer."""
        if not version:
            raise errors.Undecodable(f"{self._resource}: a list without a version")
        if is_newer(self._furthest, version):
            self._start_over(version)
        for key in self.store.keys_up_to(version) - seen:
            self._remove(key)
        self.advance(version)

    def expire(self) -> None:
        """The server does not remember `version` any more: only a census helps."""
        self.version = ""

    def _start_over(self, version: str) -> NoReturn:
        """Versions of a past that did not happen cannot be compared with those of the present."""
        for known in self.store:
            self._remove(known.metadata.key)
        message = f"the server went back from version {self._furthest} to {version}"
        self._furthest = ""
        raise errors.Gone(errors.Status(message=f"{message} (restored from a backup?)", code=410))

    def _put(self, key: Key, new: T) -> None:
        old = self.store.get(key)
        unconfirmed = key in self._unconfirmed
        if old is not None and not unconfirmed and _same_version(old, new):
            return
        told = self._unconfirmed.pop(key) if unconfirmed else old
        self._store(new)
        self._tell(Change(told, new))

    def _store(self, new: T) -> None:
        before = len(self.store)
        self.store.put(new)
        self._size.inc(len(self.store) - before)

    def _remove(self, key: Key) -> None:
        old = self.store.remove(key)
        if old is None:
            return
        self._size.dec()
        told = self._unconfirmed.pop(key, old)
        if told is not None:
            self._tell(Change(told, None))

    def _tell(self, change: Change[T]) -> None:
        for handler in self._handlers:
            try:
                handler(change)
            except Exception:
                log.exception(
                    "a handler of changes failed", extra={"resource": str(self._resource)}
                )

    def _leave_out(self, raw: msgspec.Raw, error: Exception) -> Metadata:
        """One object that does not fit its type must not stop the others."""
        metadata = _identity(raw)
        log.warning(
            "an object does not fit its type and is left out",
            extra={"resource": str(self._resource), "key": str(metadata.key), "error": str(error)},
        )
        self._undecodable.inc()
        if not self.store.has_newer(metadata.key, metadata.resource_version):
            self._remove(metadata.key)
        return metadata


class _Identity(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str
    namespace: str = ""


class _Anything(msgspec.Struct):
    metadata: _Identity


_decode_anything = msgspec.json.Decoder(_Anything).decode
_encode = msgspec.json.Encoder().encode


def _identity(raw: msgspec.Raw) -> Metadata:
    """Which object and which version, whatever the rest looks like."""
    try:
        found = decoded(_decode_anything, raw).metadata
    except errors.MALFORMED as error:
        raise errors.Undecodable(f"an object without a name or a version: {error}") from error
    return Metadata(
        name=found.name, namespace=found.namespace, resource_version=found.resource_version
    )


def _same_version(one: Object, other: Object) -> bool:
    return one.metadata.resource_version == other.metadata.resource_version


def _is_later(one: Object, other: Object) -> bool:
    return is_newer(one.metadata.resource_version, other.metadata.resource_version)
