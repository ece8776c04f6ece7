"""What time it is, as a value to give: tests have clocks of their own."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

Clock: TypeAlias = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


def ahead(wait: timedelta | None) -> timedelta | None:
    """A time to wait for. What is over is not: it would be looked at again and again."""
    return wait if wait is not None and wait > timedelta(0) else None
