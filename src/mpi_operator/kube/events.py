"""Events about objects, which `kubectl describe` shows.

    async with EventRecorder(client, "mpi-operator") as events:
        events.record(ObjectReference.to(job), Severity.WARNING, "QuotaExceeded", "…")

`record` never waits and never fails because of the cluster. `event_correlator` decides what to
write; one task writes it, one record after the other. Events are best effort: after a few tries
they are dropped and counted, and nothing else stops.
"""

import asyncio
import logging
import random
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from . import errors
from .backoff import Backoff
from .client import Client
from .event_correlator import (
    Drop,
    EventCorrelator,
    Limits,
    ObjectReference,
    Occurrence,
    Record,
    Severity,
)
from .noop_metrics import NOOP_METRICS
from .resources import EVENTS

if TYPE_CHECKING:
    from .metrics import Metrics

__all__ = ["EventRecorder", "Limits", "ObjectReference", "Severity"]

_TRIES = 5
_BACKOFF = Backoff(base=0.5, cap=8.0)
# A server may ask for a longer wait than an event is worth.
_LONGEST_DELAY = 30.0

_MAY_PASS = (
    errors.TooManyRequests,
    errors.NotSent,
    errors.ConnectionLost,
    errors.ServerError,
)

_logger = logging.getLogger(__name__)


def _utc_now() -> datetime:
    return datetime.now(UTC)


class EventRecorder:
    """Records events and writes them to the cluster in the background."""

    def __init__(
        self,
        client: Client,
        component: str,
        *,
        instance: str = "",
        clock: Callable[[], datetime] = _utc_now,
        metrics: "Metrics | None" = None,
        limits: Limits | None = None,
        flush_timeout: float = 5.0,
    ) -> None:
        self._client = client
        self._component = component
        self._instance = (instance or socket.gethostname())[:128]
        self._clock = clock
        self._dropped = (metrics or NOOP_METRICS).events_dropped
        self._correlator = EventCorrelator(limits)
        self._flush_timeout = flush_timeout
        self._recorded = asyncio.Event()
        self._closing = False

    def record(
        self, regarding: ObjectReference, severity: Severity, reason: str, message: str
    ) -> None:
        """Record an event. `reason` is one CamelCase word, `message` a sentence."""
        if self._closing:
            self._count_drop(Drop.CLOSED)
            return
        happened = Occurrence(regarding, severity, reason, message)
        dropped = self._correlator.add(happened, self._clock())
        if dropped:
            self._count_drop(dropped)
        self._recorded.set()

    async def __aenter__(self) -> Self:
        self._writing = asyncio.create_task(self._write_all(), name="events")
        return self

    async def __aexit__(self, *_: object) -> None:
        """Write the events that wait, but within `flush_timeout`, because the process is ending."""
        self._closing = True
        self._recorded.set()
        try:
            await asyncio.wait({self._writing}, timeout=self._flush_timeout)
        finally:
            self._writing.cancel()
            await asyncio.wait({self._writing})
            self._drop_rest()

    async def _write_all(self) -> None:
        while True:
            self._recorded.clear()
            while record := self._correlator.take():
                await self._write(record)
            if self._closing:
                return
            await self._recorded.wait()

    async def _write(self, record: Record) -> None:
        try:
            await self._store_with_retries(record)
        except errors.KubeError as error:
            self._drop(record, error)
        except asyncio.CancelledError:
            self._count_drop(Drop.CLOSED)
            raise
        except Exception:
            # Continue with the events of other objects.
            self._count_drop(Drop.REJECTED)
            _logger.exception("Event dropped", extra=_facts(record))

    async def _store_with_retries(self, record: Record) -> None:
        for failures in range(1, _TRIES):
            try:
                return await self._store(record)
            except _MAY_PASS as error:
                await asyncio.sleep(_delay(error, failures))
        return await self._store(record)

    async def _store(self, record: Record) -> None:
        """Create or update the Event on the server.

        Safe to repeat if an answer gets lost: names are unique, and counts are totals.
        """
        if record.is_current:
            return
        count = record.count  # more may happen while the server is busy
        if not (record.is_stored and await self._change(record)):
            await self._create(record)
        record.stored_count = count

    async def _create(self, record: Record) -> None:
        try:
            await self._client.create(EVENTS, record.to_manifest(self._component, self._instance))
        except errors.AlreadyExists:
            await self._change(record)

    async def _change(self, record: Record) -> bool:
        """Update the Event; False if it is gone: the server deletes events after an hour or so."""
        try:
            await self._client.patch(EVENTS, record.name, record.changes(), record.namespace)
        except errors.NotFound:
            return False
        return True

    def _drop(self, record: Record, error: errors.KubeError) -> None:
        why = _why_dropped(error)
        self._count_drop(why)
        # Objects in a namespace that is being deleted cause many events that no user needs.
        level = logging.DEBUG if why is Drop.NAMESPACE_GONE else logging.WARNING
        _logger.log(level, "Event dropped", extra=_facts(record) | {"error": str(error)})

    def _drop_rest(self) -> None:
        left = len(self._correlator)
        while self._correlator.take():
            self._count_drop(Drop.CLOSED)
        if left:
            _logger.warning(
                "Events dropped, because there was no time left to write them",
                extra={"count": left},
            )

    def _count_drop(self, why: Drop) -> None:
        self._dropped.labels(why.value).inc()


def _delay(error: errors.KubeError, failures: int) -> float:
    asked = error.retry_after if isinstance(error, errors.ApiError) else None
    return min(max(asked or 0.0, _BACKOFF.delay(failures, random.random())), _LONGEST_DELAY)


def _why_dropped(error: errors.KubeError) -> Drop:
    if isinstance(error, errors.NotFound) or _is_namespace_terminating(error):
        return Drop.NAMESPACE_GONE
    if isinstance(error, errors.Forbidden):
        return Drop.FORBIDDEN
    return Drop.UNREACHABLE if isinstance(error, _MAY_PASS) else Drop.REJECTED


def _is_namespace_terminating(error: errors.KubeError) -> bool:
    return isinstance(error, errors.Forbidden) and any(
        cause.reason == "NamespaceTerminating" for cause in error.causes
    )


def _facts(record: Record) -> dict[str, str]:
    occurrence = record.occurrence
    return {
        "namespace": record.namespace,
        "regarding": f"{occurrence.regarding.kind} {occurrence.regarding.name}",
        "reason": occurrence.reason,
    }
