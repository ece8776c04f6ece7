"""Times as Kubernetes writes them: UTC, whole seconds, a Z at the end."""

from datetime import UTC, datetime


def now() -> datetime:
    """What time it is, where nobody gives another clock."""
    return datetime.now(UTC)


def timestamp(moment: datetime) -> str:
    """A time in a manifest."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(text: str) -> datetime:
    """A time from a manifest."""
    return datetime.fromisoformat(text)
