"""The fence: how long this process may write."""

import time
from collections.abc import Callable
from typing import Protocol

from mpi_operator.kube import errors


class Fence(Protocol):
    """Permission to write. Asked before each write is sent, and before it is sent again."""

    @property
    def grace(self) -> float:
        """Seconds after the permission in which no other process writes: late writes may land."""
        ...

    def remaining(self) -> float:
        """Seconds for which writing stays allowed; NotLeader when that time is over."""
        ...

    def doubt(self) -> None:
        """A write got no answer and may still land: do not release the lease within `grace`."""
        ...


def steady_clock() -> float:
    """Seconds on a clock that cannot be set and that runs while the machine is suspended."""
    return time.clock_gettime(_CLOCK) if _CLOCK is not None else time.monotonic()


_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", None)


class LeaseFence:
    """Allows writes while the lease is ours: it opens once, is extended, and closes for good.

    One thread extends it and any thread may ask: each attribute is written atomically, no lock.
    """

    def __init__(self, clock: Callable[[], float] = steady_clock) -> None:
        self._clock = clock
        self._until = float("-inf")
        self._doubtful_until = float("-inf")
        self.why_closed = ""

    def remaining(self) -> float:
        """Seconds for which writing stays allowed; NotLeader when that time is over."""
        # Read the end before the clock: a pause between the two then errs on the safe side.
        left = self._until - self._clock()
        if left > 0 and not self.why_closed:
            return left
        if self.was_opened:
            self.close("the lease was not renewed in time")
        raise errors.NotLeader(self.why_closed or "this process does not hold the lease yet")

    def extend(self, until: float) -> bool:
        """Allow writing until then; false if that is past, NotLeader if the fence is closed."""
        if self.was_opened or self.why_closed:
            self.remaining()
        if until <= self._clock():
            return False
        self._until = until
        return True

    def close(self, why: str) -> None:
        """Allow nothing from now on. The first reason stays."""
        self.why_closed = self.why_closed or why

    def doubt(self, seconds: float) -> None:
        """For so many seconds a write that got no answer may still land."""
        self._doubtful_until = self._clock() + seconds

    @property
    def is_doubtful(self) -> bool:
        return self._clock() < self._doubtful_until

    @property
    def was_opened(self) -> bool:
        return self._until > float("-inf")

    @property
    def is_open(self) -> bool:
        try:
            return self.remaining() > 0
        except errors.NotLeader:
            return False
