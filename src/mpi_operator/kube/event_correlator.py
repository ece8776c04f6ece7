"""What there is to tell about objects, and what of it is worth a write.

An object in trouble repeats itself, and the server must not pay for that. So the ledger keeps one
`Record` per thing to tell (object, severity, reason, message) with the count of how often it
happened, and a line of records whose latest count is not on the server yet:

- what happens again while its record waits in line costs nothing: the write carries the new count;
- what happens again later is a change of the Event on the server, not a new one;
- more than ten messages that differ in nothing else within ten minutes share one record;
- an object has a budget of writes, refilled slowly; what exceeds it is counted, not written.

A write that is left out loses no counts, for the next one carries them. No I/O and no clock here:
an occurrence and the time go in, `Record`s to be written come out.
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
    """What Kubernetes calls the type of an Event."""

    NORMAL = "Normal"
    WARNING = "Warning"


class Drop(StrEnum):
    """Why something was not written."""

    RATE_LIMITED = "rate_limited"
    OVERFLOW = "overflow"
    NAMESPACE_GONE = "namespace_gone"
    FORBIDDEN = "forbidden"
    REJECTED = "rejected"
    UNREACHABLE = "unreachable"
    CLOSED = "closed"


@dataclass(frozen=True)
class ObjectReference:
    """The object that an event is about. Its version is told, but does not make it another one."""

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
    """One thing that happened. Equal ones are the same thing happening again."""

    regarding: ObjectReference
    severity: Severity
    reason: str
    message: str


@dataclass
class Record:
    """One Event: how it is called, and what it should say on the server."""

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
        """The whole Event, as `kubectl describe` wants to find it."""
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
        """What differs from an earlier write of the same record."""
        return {
            "message": self.occurrence.message,
            "count": self.count,
            "lastTimestamp": _timestamp(self.last),
        }


@dataclass(frozen=True)
class Limits:
    """How much is written and remembered. Budget and combining are client-go's."""

    burst: int = 25
    refill: timedelta = timedelta(seconds=300)
    similar: int = 10
    similar_within: timedelta = timedelta(minutes=10)
    remembered: int = 4096
    waiting: int = 1024


class Ledger:
    """Takes what happened, gives what to write."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._records: LRU[Occurrence, Record] = LRU(self._limits.remembered)
        self._budgets: LRU[ObjectReference, TokenBucket] = LRU(self._limits.remembered)
        self._similar: LRU[Occurrence, dict[int, datetime]] = LRU(self._limits.remembered)
        # Two lines: news go out before repeats, and when there are too many, repeats go first.
        self._news: OrderedDict[Occurrence, Record] = OrderedDict()
        self._repeats: OrderedDict[Occurrence, Record] = OrderedDict()
        self._last_name = 0

    def __len__(self) -> int:
        """How many records wait to be written."""
        return len(self._news) + len(self._repeats)

    def note(self, occurrence: Occurrence, now: datetime) -> Drop | None:
        """Count what happened and put it in line, or say why something is not written."""
        occurrence = _shortened(occurrence)
        thing = self._thing(occurrence, now)
        record = self._waiting(thing)
        is_waiting = record is not None
        if record is None:
            record = self._records.recall(thing, lambda: self._new_record(occurrence, now))
        _count(record, _as_part_of(thing, occurrence), now)
        return None if is_waiting else self._put_in_line(thing, record, now)

    def take(self) -> Record | None:
        """The next record to be written, for good: it only waits again when it happens again."""
        for line in (self._news, self._repeats):
            if line:
                return line.popitem(last=False)[1]
        return None

    def _waiting(self, thing: Occurrence) -> Record | None:
        return self._news.get(thing) or self._repeats.get(thing)

    def _put_in_line(self, thing: Occurrence, record: Record, now: datetime) -> Drop | None:
        if not self._budget(thing.regarding, now).take(now):
            return Drop.RATE_LIMITED
        line = self._repeats if record.is_stored else self._news
        line[thing] = record
        if len(self) <= self._limits.waiting:
            return None
        (self._repeats or self._news).popitem(last=False)
        return Drop.OVERFLOW

    def _budget(self, regarding: ObjectReference, now: datetime) -> TokenBucket:
        limits = self._limits
        return self._budgets.recall(
            regarding, lambda: TokenBucket(limits.burst, limits.refill, now)
        )

    def _thing(self, occurrence: Occurrence, now: datetime) -> Occurrence:
        """Which record an occurrence belongs to: its own, or that of too many similar ones."""
        combined = replace(occurrence, message=COMBINED)
        times = self._similar.recall(combined, dict)
        for message, time in list(times.items()):
            # Either direction: a clock that was set back must not keep a message for ever.
            if abs(now - time) >= self._limits.similar_within:
                del times[message]
        # The hash is enough to tell ten messages apart, and takes a hundredth of the memory.
        if hash(occurrence.message) not in times and len(times) >= self._limits.similar:
            return combined
        times[hash(occurrence.message)] = now
        return occurrence

    def _new_record(self, occurrence: Occurrence, now: datetime) -> Record:
        regarding = occurrence.regarding
        name = self._event_name(regarding.name, now)
        # The server wants events about cluster-wide objects in this namespace.
        return Record(name, regarding.namespace or "default", occurrence, first=now, last=now)

    def _event_name(self, object_name: str, now: datetime) -> str:
        """`<object>.<time>`: no two are the same, even if the clock stands still or goes back."""
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


def _as_part_of(thing: Occurrence, occurrence: Occurrence) -> Occurrence:
    """The occurrence as its record tells it: a shared record shows the latest message."""
    if thing == occurrence:
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
