"""A rate limit that allows bursts: each object has one for its events (`event_correlator`).

A file of its own, because its rules are about nothing but time, and tested as such.
"""

from datetime import datetime, timedelta


class TokenBucket:
    """Starts full with `burst` tokens; an empty one gets a token every `refill`."""

    def __init__(self, burst: int, refill: timedelta, now: datetime) -> None:
        self._burst = burst
        self._refill = refill
        self._tokens = float(burst)
        self._filled_at = now

    def take(self, now: datetime) -> bool:
        """Take a token if there is one."""
        # A clock that was set back must neither remove tokens nor stop the refill.
        passed = max(now - self._filled_at, timedelta(0))
        self._tokens = min(self._tokens + passed / self._refill, self._burst)
        self._filled_at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
