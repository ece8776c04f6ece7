"""The API server's audit log: who did what, for tests that count requests.

The policy keeps the metadata of every request and leaves out the stage RequestReceived. A watch
has two records, one when it starts (stage ResponseStarted) and one when it ends; everything else
has one. The server writes a record just *after* it has answered: wait for it, do not expect it.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}


@dataclass(frozen=True)
class Record:
    """One line of the log. Requests for something other than a resource have resource ''."""

    user: str
    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    stage: str
    user_agent: str
    uri: str


def read(log: Path) -> Iterator[Record]:
    """The records so far, oldest first; a line that is still being written is left out."""
    if not log.exists():
        return
    with log.open() as lines:
        for line in lines:
            if line.endswith("\n"):
                yield _record(json.loads(line))


def _record(event: dict[str, Any]) -> Record:
    # Creations name their object only in the body, so the metadata of those lacks the name.
    target = event.get("objectRef", {})
    return Record(
        user=event["user"].get("username", ""),
        verb=event["verb"],
        resource=target.get("resource", ""),
        subresource=target.get("subresource", ""),
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        code=event.get("responseStatus", {}).get("code", 0),
        stage=event["stage"],
        user_agent=event.get("userAgent", ""),
        uri=event["requestURI"],
    )
