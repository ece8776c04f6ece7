"""Which failed requests the client retries, and when.

Only requests that certainly changed nothing: those refused with 429, those never sent, and reads.
Any other failed write may have happened, and only the caller knows whether repeating it is safe.
"""

from collections.abc import Callable

from .backoff import Backoff
from .errors import (
    ApiError,
    ConnectionLost,
    KubeError,
    NotSent,
    ServerError,
    TooManyRequests,
    Untrusted,
)

_BACKOFF = Backoff(base=0.1, cap=5.0)


def delay_before_retry(
    error: KubeError, *, is_read: bool, attempt: int, random: Callable[[], float]
) -> float | None:
    """Seconds to wait before a retry, or None if the caller has to decide.

    `attempt` counts from 0. `random` returns numbers in [0, 1), so that clients that failed
    together do not retry together.
    """
    if not _may_retry(error, is_read):
        return None
    ours = _BACKOFF.delay(attempt + 1, random())
    asked = error.retry_after if isinstance(error, ApiError) else None
    if asked is None:
        return ours
    # Never earlier than the server asked for, spread over time, and later with every attempt even
    # if the server asks for no delay.
    return max(ours, asked * (1 + random() / 4))


def _may_retry(error: KubeError, is_read: bool) -> bool:
    if isinstance(error, Untrusted):
        return False
    if isinstance(error, TooManyRequests | NotSent):
        return True
    return is_read and isinstance(error, ConnectionLost | ServerError)
