"""Timestamps in the format of Kubernetes: UTC, a Z at the end."""

from datetime import UTC, datetime


def now() -> datetime:
    """The current time: the default clock."""
    return datetime.now(UTC)


def timestamp(moment: datetime) -> str:
    """Format a time for a manifest, in whole seconds."""
    return _formatted(moment, "seconds")


def exact_timestamp(moment: datetime) -> str:
    """Format the time of a line, with milliseconds."""
    return _formatted(moment, "milliseconds")


def _formatted(moment: datetime, precision: str) -> str:
    utc = moment.astimezone(UTC).replace(tzinfo=None)
    return f"{utc.isoformat(timespec=precision)}Z"


def moment(text: str) -> datetime:
    """Parse a time of a manifest."""
    return datetime.fromisoformat(text)
