"""The API server's audit log, for counting and timing requests.

The policy keeps the metadata of every request and leaves out the stage RequestReceived. A watch
has two records, one when it starts (stage ResponseStarted) and one when it ends; everything else
has one. The server writes a record just *after* it has answered: poll for it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

_WRITES = frozenset(("create", "update", "patch", "delete", "deletecollection"))
_NOT_COUNTED = frozenset(("leases",))  # leader election, not work


@dataclass(frozen=True)
class Record:
    """One line of the log. Requests for something other than a resource have resource ''."""

    user: str
    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    """Of the object; empty in create requests, where only the body has it."""
    code: int
    stage: str
    user_agent: str
    uri: str
    group: str = ""
    """The API group of the resource; empty for the core group."""
    received: float = 0.0
    answered: float = 0.0

    @property
    def kind(self) -> str:
        """The request, such as `update mpijobs/status`, with the code if it failed."""
        target = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        return f"{self.verb} {target}" + ("" if self.code < 300 else f" ({self.code})")

    @property
    def is_write(self) -> bool:
        return self.verb in _WRITES and self.resource not in _NOT_COUNTED

    def has_created(self, resource: str) -> bool:
        """Whether this request created an object of a resource."""
        created = (self.verb, self.resource, self.subresource, self.code)
        return created == ("create", resource, "", 201)


def policy(groups: Sequence[str] = ()) -> dict[str, Any]:
    """What to log: the requests of all users, or only of those in some groups."""
    chosen: dict[str, Any] = {"level": "Metadata"} | ({"userGroups": [*groups]} if groups else {})
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [chosen, {"level": "None"}],
    }


class Log:
    """Returns each record once, oldest first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def new(self) -> list[Record]:
        """The records since the last call, without a line that is still being written."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as log:
            log.seek(self._offset)
            text = log.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        return [parse(line) for line in whole.splitlines()]

    def skip(self) -> None:
        """Skip the records so far."""
        self._offset = self._path.stat().st_size


def read(log: Path) -> Iterator[Record]:
    """The records so far, oldest first, without a line that is still being written."""
    return iter(Log(log).new())


def writes(records: Iterable[Record], user: str) -> list[Record]:
    """The write requests of a user, without leases, whether they succeeded or not."""
    return [each for each in records if each.user == user and each.is_write]


def counted(records: Iterable[Record]) -> dict[str, int]:
    """The number of requests of each kind."""
    return dict(sorted(Counter(each.kind for each in records).items()))


class _User(msgspec.Struct, frozen=True):
    username: str = ""


class _Target(msgspec.Struct, frozen=True):
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    group: str = msgspec.field(default="", name="apiGroup")


class _Status(msgspec.Struct, frozen=True):
    code: int = 0


class _Line(msgspec.Struct, frozen=True, rename="camel"):
    verb: str
    stage: str
    user: _User = _User()
    user_agent: str = ""
    object_ref: _Target = _Target()
    response_status: _Status = _Status()
    uri: str = msgspec.field(default="", name="requestURI")
    request_received_timestamp: datetime | None = None
    stage_timestamp: datetime | None = None


_decode = msgspec.json.Decoder(_Line).decode


def parse(line: bytes) -> Record:
    """A line of the log."""
    found = _decode(line)
    target = found.object_ref
    return Record(
        user=found.user.username,
        verb=found.verb,
        resource=target.resource,
        subresource=target.subresource,
        namespace=target.namespace,
        name=target.name,
        code=found.response_status.code,
        stage=found.stage,
        user_agent=found.user_agent,
        uri=found.uri,
        group=target.group,
        received=_seconds(found.request_received_timestamp),
        answered=_seconds(found.stage_timestamp),
    )


def _seconds(moment: datetime | None) -> float:
    return moment.timestamp() if moment else 0.0
