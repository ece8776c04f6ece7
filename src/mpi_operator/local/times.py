"""Timestamps in the format of Kubernetes: UTC, whole seconds, a Z at the end."""

from datetime import UTC, datetime


def now() -> datetime:
    """The current time: the default clock."""
    return datetime.now(UTC)


def timestamp(moment: datetime) -> str:
    """Format a time for a manifest."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(text: str) -> datetime:
    """Parse a time of a manifest."""
    return datetime.fromisoformat(text)
