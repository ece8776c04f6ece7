"""Something worth an event, to be told once what it tells of is on record."""

from dataclasses import dataclass

from mpi_operator.kube.events import Severity

_LONGEST = 1024  # what the API server takes


@dataclass(frozen=True)
class News:
    """An event about a job."""

    severity: Severity
    reason: str
    message: str


def normal(reason: str, message: str) -> News:
    return News(Severity.NORMAL, reason, shortened(message))


def warning(reason: str, message: str) -> News:
    return News(Severity.WARNING, reason, shortened(message))


def shortened(text: str) -> str:
    """A text as long as events and conditions take it."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
