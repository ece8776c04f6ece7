"""What the API server was asked, when, and by whom: lines of its audit log."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

_WRITES = frozenset(("create", "update", "patch", "delete", "deletecollection"))
_OWN_AFFAIRS = frozenset(("leases",))  # an operator's, not a job's


class _User(msgspec.Struct, frozen=True):
    username: str = ""


class _Target(msgspec.Struct, frozen=True):
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class _Status(msgspec.Struct, frozen=True):
    code: int = 0


class _Line(msgspec.Struct, frozen=True):
    verb: str
    stage: str
    received: datetime = msgspec.field(name="requestReceivedTimestamp")
    answered: datetime = msgspec.field(name="stageTimestamp")
    user: _User = _User()
    target: _Target = msgspec.field(default=_Target(), name="objectRef")
    status: _Status = msgspec.field(default=_Status(), name="responseStatus")


@dataclass(frozen=True)
class Request:
    """One request that was answered."""

    user: str
    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    """Of the object, but where one was created: there the log has none."""
    code: int
    received: float
    answered: float

    @property
    def kind(self) -> str:
        """What was written, such as `update mpijobs/status`; a refusal is told with its code."""
        place = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        return f"{self.verb} {place}" + ("" if self.code < 300 else f" ({self.code})")

    @property
    def is_write(self) -> bool:
        return self.verb in _WRITES and self.resource not in _OWN_AFFAIRS

    def has_created(self, resource: str) -> bool:
        """Whether there is one more of a resource since."""
        created = (self.verb, self.resource, self.subresource, self.code)
        return created == ("create", resource, "", 201)


class Missing:
    """How many objects a user has still to create in a namespace, by resource."""

    def __init__(self, user: str, namespace: str, counts: Mapping[str, int]) -> None:
        self._where = (user, namespace)
        self._counts = dict(counts)

    def is_nothing_after(self, requests: Iterable[Request]) -> bool:
        """Whether all are there, now that these requests have been answered too."""
        for each in requests:
            if (each.user, each.namespace) == self._where and each.has_created(each.resource):
                self._counts[each.resource] = self._counts.get(each.resource, 0) - 1
        return all(count <= 0 for count in self._counts.values())


_decode = msgspec.json.Decoder(_Line).decode


def parse(line: bytes) -> Request:
    """A line of the log."""
    found = _decode(line)
    return Request(
        user=found.user.username,
        verb=found.verb,
        resource=found.target.resource,
        subresource=found.target.subresource,
        namespace=found.target.namespace,
        name=found.target.name,
        code=found.status.code,
        received=found.received.timestamp(),
        answered=found.answered.timestamp(),
    )


def writes(requests: Iterable[Request], user: str) -> list[Request]:
    """What a user has asked to be written, its lease aside, whether that was done or not."""
    return [each for each in requests if each.user == user and each.is_write]


def beyond_objects(requests: Iterable[Request]) -> list[Request]:
    """Of these writes, those that neither create nor delete an object of a job.

    What is left is what a job costs while it lives: its status, changes of its ConfigMap and of its
    Job, events, and every attempt that was refused.
    """
    return [each for each in requests if not _makes_or_removes(each)]


def _makes_or_removes(request: Request) -> bool:
    if request.resource == "events" or request.code >= 300:
        return False
    return request.verb in ("create", "delete", "deletecollection") and not request.subresource


def counted(requests: Iterable[Request]) -> dict[str, int]:
    """How many there are of each kind."""
    return dict(sorted(Counter(each.kind for each in requests).items()))


def span(requests: Sequence[Request]) -> float:
    """Seconds from the first that came to the last that was answered."""
    return max(each.answered for each in requests) - min(each.received for each in requests)
