"""Which events to write, and which to combine or drop. Pure: no I/O, no clock.

An object with a problem repeats its events, and the API server should not pay for that. So the
correlator keeps one `Record` per event (object, severity, reason, message) with a count, and a
queue of the records whose count is not on the server yet:

- an event that repeats while its record waits costs nothing: the write has the new count;
- an event that repeats later updates the Event on the server and creates no new one;
- more than ten messages within ten minutes that differ in nothing else share one record;
- each object has a budget of writes, which refills slowly; beyond it events are only counted.

A write that is left out loses no counts, because the next one includes them.
"""

import re
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from .lru import LRU
from .resources import Manifest
from .token_bucket import TokenBucket

COMBINED = "(combined from similar events): "

# The server counts bytes: https://pkg.go.dev/k8s.io/api/events/v1#Event
_MESSAGE_BYTES = 1024
_REASON_BYTES = 128
_NAME_LENGTH = 253
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")


class Severity(StrEnum):
    """The type of an Event in Kubernetes."""

    NORMAL = "Normal"
    WARNING = "Warning"


class Drop(StrEnum):
    """Why an event was not written."""

    RATE_LIMITED = "rate_limited"
    OVERFLOW = "overflow"
    NAMESPACE_GONE = "namespace_gone"
    FORBIDDEN = "forbidden"
    REJECTED = "rejected"
    UNREACHABLE = "unreachable"
    CLOSED = "closed"


@dataclass(frozen=True)
class ObjectReference:
    """The object that an event is about, whatever its version."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = field(default="", compare=False)

    @classmethod
    def to(cls, manifest: Manifest) -> "ObjectReference":
        """The reference to an object as Kubernetes writes it."""
        metadata = manifest["metadata"]
        return cls(
            api_version=manifest["apiVersion"],
            kind=manifest["kind"],
            name=metadata["name"],
            namespace=metadata.get("namespace", ""),
            uid=metadata.get("uid", ""),
            resource_version=metadata.get("resourceVersion", ""),
        )

    def to_manifest(self) -> Manifest:
        fields = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "namespace": self.namespace,
            "uid": self.uid,
            "resourceVersion": self.resource_version,
        }
        return {name: value for name, value in fields.items() if value}


@dataclass(frozen=True)
class Occurrence:
    """Something that happened to an object. Equal occurrences are repeats."""

    regarding: ObjectReference
    severity: Severity
    reason: str
    message: str


@dataclass
class Record:
    """One Event: its name, and the content that it should have on the server."""

    name: str
    namespace: str
    occurrence: Occurrence
    first: datetime
    last: datetime
    count: int = 0
    stored_count: int = 0

    @property
    def is_stored(self) -> bool:
        return self.stored_count > 0

    @property
    def is_current(self) -> bool:
        return self.stored_count == self.count

    def to_manifest(self, component: str, instance: str) -> Manifest:
        """The whole Event, in the form that `kubectl describe` reads."""
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "involvedObject": self.occurrence.regarding.to_manifest(),
            "type": self.occurrence.severity.value,
            "reason": self.occurrence.reason,
            "source": {"component": component},
            "reportingComponent": component,
            "reportingInstance": instance,
            "firstTimestamp": _timestamp(self.first),
        } | self.changes()

    def changes(self) -> Manifest:
        """The fields that change when an event repeats."""
        return {
            "message": self.occurrence.message,
            "count": self.count,
            "lastTimestamp": _timestamp(self.last),
        }


@dataclass(frozen=True)
class Limits:
    """How many events to write and to remember. Budget and combining are those of client-go."""

    burst: int = 25
    refill: timedelta = timedelta(seconds=300)
    similar: int = 10
    similar_within: timedelta = timedelta(minutes=10)
    remembered: int = 4096
    waiting: int = 1024


class EventCorrelator:
    """Takes occurrences, returns records to write."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._records: LRU[Occurrence, Record] = LRU(self._limits.remembered)
        self._budgets: LRU[ObjectReference, TokenBucket] = LRU(self._limits.remembered)
        self._similar: LRU[Occurrence, dict[int, datetime]] = LRU(self._limits.remembered)
        # Two queues: new events are written before repeats, and repeats are dropped first.
        self._new: OrderedDict[Occurrence, Record] = OrderedDict()
        self._repeats: OrderedDict[Occurrence, Record] = OrderedDict()
        self._last_name = 0

    def __len__(self) -> int:
        """How many records wait to be written."""
        return len(self._new) + len(self._repeats)

    def add(self, occurrence: Occurrence, now: datetime) -> Drop | None:
        """Count an occurrence and queue its record; why an event is dropped, if one is."""
        occurrence = _shortened(occurrence)
        key = self._key(occurrence, now)
        record = self._waiting(key)
        is_waiting = record is not None
        if record is None:
            record = self._records.get_or_create(key, lambda: self._new_record(occurrence, now))
        _count(record, _as_part_of(key, occurrence), now)
        return None if is_waiting else self._enqueue(key, record, now)

    def take(self) -> Record | None:
        """Remove and return the next record to write. It is queued again when it repeats."""
        for queue in (self._new, self._repeats):
            if queue:
                return queue.popitem(last=False)[1]
        return None

    def _waiting(self, key: Occurrence) -> Record | None:
        return self._new.get(key) or self._repeats.get(key)

    def _enqueue(self, key: Occurrence, record: Record, now: datetime) -> Drop | None:
        if not self._budget(key.regarding, now).take(now):
            return Drop.RATE_LIMITED
        queue = self._repeats if record.is_stored else self._new
        queue[key] = record
        if len(self) <= self._limits.waiting:
            return None
        (self._repeats or self._new).popitem(last=False)
        return Drop.OVERFLOW

    def _budget(self, regarding: ObjectReference, now: datetime) -> TokenBucket:
        limits = self._limits
        return self._budgets.get_or_create(
            regarding, lambda: TokenBucket(limits.burst, limits.refill, now)
        )

    def _key(self, occurrence: Occurrence, now: datetime) -> Occurrence:
        """The key of an occurrence's record: its own, or the shared one of many similar events."""
        combined = replace(occurrence, message=COMBINED)
        times = self._similar.get_or_create(combined, dict)
        for message, time in list(times.items()):
            # In either direction: a clock that was set back must not keep a message forever.
            if abs(now - time) >= self._limits.similar_within:
                del times[message]
        # Hashes suffice to tell ten messages apart, and take a hundredth of the memory.
        if hash(occurrence.message) not in times and len(times) >= self._limits.similar:
            return combined
        times[hash(occurrence.message)] = now
        return occurrence

    def _new_record(self, occurrence: Occurrence, now: datetime) -> Record:
        regarding = occurrence.regarding
        name = self._event_name(regarding.name, now)
        # The server requires this namespace for events about cluster-scoped objects.
        return Record(name, regarding.namespace or "default", occurrence, first=now, last=now)

    def _event_name(self, object_name: str, now: datetime) -> str:
        """`<object>.<time>`, unique even if the clock stands still or goes back."""
        nanoseconds = (now - _EPOCH) // timedelta(microseconds=1) * 1000
        self._last_name = max(nanoseconds, self._last_name + 1)
        suffix = f".{self._last_name:x}"
        stem = object_name[: _NAME_LENGTH - len(suffix)].rstrip("-.")
        # Some kinds have names that events cannot have, such as the role "system:node".
        return (stem if _SUBDOMAIN.fullmatch(stem) else "event") + suffix


def _count(record: Record, occurrence: Occurrence, now: datetime) -> None:
    record.count += 1
    record.last = now
    record.occurrence = occurrence


def _as_part_of(key: Occurrence, occurrence: Occurrence) -> Occurrence:
    """The occurrence as its record shows it: a shared record has the latest message."""
    if key == occurrence:
        return occurrence
    return _shortened(replace(occurrence, message=COMBINED + occurrence.message))


def _shortened(occurrence: Occurrence) -> Occurrence:
    return replace(
        occurrence,
        reason=_cut(occurrence.reason, _REASON_BYTES),
        message=_cut(occurrence.message, _MESSAGE_BYTES),
    )


def _cut(text: str, most: int) -> str:
    encoded = text.encode(errors="replace")
    if len(encoded) <= most:
        return encoded.decode()
    return encoded[: most - 3].decode(errors="ignore") + "..."


def _timestamp(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
