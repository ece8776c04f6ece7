"""A cache that follows a collection on the server.

    list everything ──► watch from there ──► ended? watch from where it ended
          ▲                                        │
          └─────────── 410: too long ago ──────────┘

If the server can stream a list (`sendInitialEvents`), listing and watching is one request that
needs no memory for the whole list; otherwise the list comes in pages. Either way the cache compares
objects with what it has, so that handlers get only changes.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Annotated, Generic, TypeVar

import msgspec

from . import errors
from .backoff import Backoff
from .cache import Cache, Handler, Unreadable
from .client import INITIAL_EVENTS_END, Client, EventType, Selector, WatchEvent, WatchOptions
from .noop_metrics import NOOP_METRICS
from .objects import Object
from .resources import Key, Manifest, Resource
from .store import Index, Store

if TYPE_CHECKING:
    from .metrics import Metrics

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)

_BACKOFF = Backoff(base=0.1, cap=30.0)
# Watches are reopened now and then, at random times, so that a restarted API server gets its share
# of them back.
_WATCH_SECONDS = (300.0, 600.0)
_NO_END_BEFORE_SECONDS = 1.0
# A session that fails sooner counts as a failure in a row, however far it came: a server that
# answers 410 after every list must not get ten lists a second.
_NO_GOOD_BEFORE_SECONDS = 5.0


class Informer(Generic[T]):
    """Keeps `store` equal to a collection on the server while `run` runs."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        kind: type[T],
        *,
        namespace: str = "",
        selector: Selector = Selector(),
        indexes: Mapping[str, Index[T]] | None = None,
        metrics: "Metrics | None" = None,
    ) -> None:
        self.resource = resource
        self.problem = ""  # why the cache is behind, for users; "" if it is not
        self._client = client
        self._namespace = namespace
        self._selector = selector
        self._metrics = metrics or NOOP_METRICS
        self._cache = Cache(resource, kind, indexes=indexes, metrics=self._metrics)
        self._can_stream = True
        self._census: set[Key] | None = None  # the keys of a streamed list so far
        self._synced = asyncio.Event()
        self._is_urgent = asyncio.Event()  # `refresh` was called
        self._session: asyncio.Task[None] | None = None

    @property
    def store(self) -> Store[T]:
        """The objects as last seen."""
        return self._cache.store

    def on_change(self, handler: Handler[T]) -> None:
        """Call `handler` with every change from now on. It must not block."""
        self._cache.on_change(handler)

    @property
    def unreadable(self) -> Mapping[Key, Unreadable]:
        """The objects that cannot be decoded, and so are not in the store."""
        return self._cache.unreadable

    def on_unreadable(self, handler: Callable[[Unreadable], None]) -> None:
        """Call `handler` with every object that cannot be decoded. It must not block."""
        self._cache.on_unreadable(handler)

    def wrote(self, manifest: Manifest) -> None:
        """Store the server's answer to a write before the watch reports it."""
        self._cache.wrote(manifest)

    async def synced(self) -> None:
        """Wait for the first complete list, or for the next one after `refresh`."""
        await self._synced.wait()

    @property
    def is_synced(self) -> bool:
        return self._synced.is_set()

    async def refresh(self) -> None:
        """List everything again now, and wait until the store has it."""
        self._synced.clear()
        self._cache.expire()
        self._is_urgent.set()
        if self._session is not None:
            self._session.cancel()
        await self.synced()

    async def run(self) -> None:
        """Follow the collection until cancelled."""
        failures = 0
        while True:
            started = _now()
            error = await self._end_of_session()
            reason = type(error).__name__ if error else "end of watch"
            self._metrics.watch_restarts.labels(str(self.resource), reason).inc()
            if error is None:
                failures = 0
                continue
            failures = 1 if _now() - started > _NO_GOOD_BEFORE_SECONDS else failures + 1
            self._report(error)
            await self._pause(_BACKOFF.delay(failures, random.random()))

    async def _pause(self, seconds: float) -> None:
        """Wait, or return early for a refresh."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._is_urgent.wait()

    async def _end_of_session(self) -> errors.KubeError | None:
        """Follow the collection over one connection; the error that ended it, if any."""
        self._is_urgent.clear()
        started = _now()
        # A separate task, so that `refresh` can cancel it.
        self._session = session = asyncio.create_task(self._follow())
        try:
            await asyncio.wait([session])
        finally:
            session.cancel()
            await asyncio.gather(session, return_exceptions=True)
        if session.cancelled():
            # Without a refresh, a library passed on a cancellation that was not meant for us.
            is_ours = self._is_urgent.is_set()
            return None if is_ours else errors.ConnectionLost("the watch was cancelled")
        error = session.exception()
        if error is None and _now() - started < _NO_END_BEFORE_SECONDS:
            return errors.ConnectionLost("the server closed a watch right after opening it")
        if error is None or isinstance(error, errors.KubeError):
            return error
        raise error

    async def _follow(self) -> None:
        try:
            if self._cache.version:
                await self._watch()
            elif not (self._can_stream and await self._has_streamed()):
                await self._read_pages()
                await self._watch()
        except errors.Gone:
            self._cache.expire()
            raise

    async def _has_streamed(self) -> bool:
        """List and watch in one request; false if the list did not complete."""
        try:
            await self._watch(streamed=True)
        except (errors.Invalid, errors.BadRequest):
            if self._census is None:
                raise
            self._can_stream = False  # an older server, or one that has it switched off
        except errors.DeadlineExceeded:
            if self._census is None:
                raise
        # The server may have had a problem when the list did not complete: use pages this time.
        return self._census is None

    async def _read_pages(self) -> None:
        pages = self._client.pages(self.resource, self._namespace, self._selector)
        census: set[Key] = set()
        version = ""
        async with aclosing(pages):
            async for page in pages:
                census.update(self._cache.saw(raw).key for raw in page.items)
                version = page.resource_version
        self._end_census(census, version, method="pages")

    async def _watch(self, *, streamed: bool = False) -> None:
        self._census = set() if streamed else None
        events = self._client.watch(
            self.resource,
            self._namespace,
            WatchOptions(
                resource_version=self._cache.version,
                labels=self._selector.labels,
                fields=self._selector.fields,
                initial_events=streamed,
                timeout=random.uniform(*_WATCH_SECONDS),
            ),
        )
        async with aclosing(events):
            async for event in events:
                self._take(event)
                if self._census is None:
                    self.problem = ""

    def _take(self, event: WatchEvent) -> None:
        if event.type is EventType.BOOKMARK:
            self._take_bookmark(_bookmark(event.raw))
            return
        is_gone = event.type is EventType.DELETED
        metadata = self._cache.lost(event.raw) if is_gone else self._cache.saw(event.raw)
        if self._census is None:
            self._cache.advance(metadata.resource_version)
        elif is_gone:
            self._census.discard(metadata.key)
        else:
            self._census.add(metadata.key)

    def _take_bookmark(self, bookmark: "_BookmarkMetadata") -> None:
        if self._census is None:
            self._cache.advance(bookmark.resource_version)
        elif bookmark.annotations.get(INITIAL_EVENTS_END) == "true":
            census, self._census = self._census, None
            self._end_census(census, bookmark.resource_version, method="stream")

    def _end_census(self, census: set[Key], version: str, *, method: str) -> None:
        try:
            self._cache.end_census(census, version)
        except errors.Gone:
            self._synced.clear()  # the store is empty, but the collection may not be
            raise
        self._metrics.relists.labels(str(self.resource), method).inc()
        self.problem = ""
        self._synced.set()

    def _report(self, error: errors.KubeError) -> None:
        """Log an error, once for as long as it stays the same."""
        if str(error) != self.problem:
            self.problem = str(error)
            log.warning(
                "Watch ended early, reopening it",
                extra={"resource": str(self.resource), "error": self.problem},
            )


class _BookmarkMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: Annotated[str, msgspec.Meta(min_length=1)]
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class _Bookmark(msgspec.Struct, frozen=True):
    metadata: _BookmarkMetadata


_decode_bookmark = msgspec.json.Decoder(_Bookmark).decode


def _bookmark(raw: msgspec.Raw) -> _BookmarkMetadata:
    try:
        return _decode_bookmark(raw).metadata
    except errors.MALFORMED as error:
        raise errors.Undecodable(
            f"the server sent a bookmark without a version: {error}"
        ) from error


def _now() -> float:
    return asyncio.get_running_loop().time()
