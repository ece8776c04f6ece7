"""The time in which this process may write: a fence that closes by itself."""

import time
from collections.abc import Callable

from mpi_operator.kube import errors


def steady_clock() -> float:
    """Seconds that nobody can set, and that pass while the machine is suspended too."""
    return time.clock_gettime(_CLOCK) if _CLOCK is not None else time.monotonic()


_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", None)


class Tenure:
    """The time in which this process may write. It begins once, is extended, and ends for ever.

    One thread extends it and any thread may ask: two attributes, each written at once, no lock.
    """

    def __init__(self, clock: Callable[[], float] = steady_clock) -> None:
        self._clock = clock
        self._until = float("-inf")
        self._doubtful_until = float("-inf")
        self.why_over = ""

    def remaining(self) -> float:
        """Seconds for which writing stays allowed; NotLeader when that time is over."""
        # The end first, then the clock: a pause between the two must make us careful, not bold.
        left = self._until - self._clock()
        if left > 0 and not self.why_over:
            return left
        if self.has_begun:
            self.end("the lease was not renewed in time")
        raise errors.NotLeader(self.why_over or "this process does not hold the lease yet")

    def extend(self, until: float) -> bool:
        """Allow writing until then; false where that is past, NotLeader where all is over."""
        if self.has_begun or self.why_over:
            self.remaining()
        if until <= self._clock():
            return False
        self._until = until
        return True

    def end(self, why: str) -> None:
        """Never again. The first reason stays."""
        self.why_over = self.why_over or why

    def doubt(self, seconds: float) -> None:
        """For that long a write that was given up may still land."""
        self._doubtful_until = self._clock() + seconds

    @property
    def is_doubtful(self) -> bool:
        return self._clock() < self._doubtful_until

    @property
    def has_begun(self) -> bool:
        return self._until > float("-inf")

    @property
    def is_valid(self) -> bool:
        try:
            return self.remaining() > 0
        except errors.NotLeader:
            return False
