"""Which failed requests the client sends again by itself, and when.

Only what certainly did nothing, or only reads: a refusal with 429, a request that never left, a
read that failed. Any other failure of a write rises to the caller, for the write may have happened,
and only the caller knows whether doing it twice is harmless.
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
    """Seconds to wait before sending again, or None where the caller has to decide.

    `attempt` counts from 0. `random` gives numbers in [0, 1): clients that failed together
    must not come back together.
    """
    if not _may_send_again(error, is_read):
        return None
    ours = _BACKOFF.delay(attempt + 1, random())
    asked = error.retry_after if isinstance(error, ApiError) else None
    if asked is None:
        return ours
    # Never earlier than the server asked for, and not all at the same moment; and later each time
    # even if it asks for no time at all.
    return max(ours, asked * (1 + random() / 4))


def _may_send_again(error: KubeError, is_read: bool) -> bool:
    if isinstance(error, Untrusted):
        return False
    if isinstance(error, TooManyRequests | NotSent):
        return True
    return is_read and isinstance(error, ConnectionLost | ServerError)
