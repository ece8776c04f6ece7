"""The state behind the liveness and readiness probes."""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

# A restarting API server or a broken watch usually recovers sooner.
GRACE_SECONDS = 30.0

NOT_CONTACTED = "the API server has not been contacted yet"
STOPPING = "the operator is stopping"


class Caches(Protocol):
    """The watch caches of the controller."""

    @property
    def is_synced(self) -> bool: ...

    @property
    def problems(self) -> Sequence[str]: ...


class Candidate(Protocol):
    """The candidate for the lease."""

    @property
    def is_leader(self) -> bool: ...

    @property
    def why_lost(self) -> str: ...


class Health:
    """Written by the other modules while they run, read by the endpoints."""

    def __init__(
        self, caches: Caches, candidate: Candidate, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.waiting_for = NOT_CONTACTED  # why the process cannot do anything yet
        self.lease_problem = ""  # why the process could not take over the lease
        self._caches = caches
        self._candidate = candidate
        self._clock = clock
        self._problems_since: float | None = None

    def liveness_problems(self) -> list[str]:
        """Why this process cannot recover; empty if it is alive."""
        # Reading `is_leader` detects an expired lease even if the lease thread is dead.
        if self._candidate.is_leader or not self._candidate.why_lost:
            return []
        return [f"this process cannot lead again: {self._candidate.why_lost}"]

    def readiness_problems(self) -> list[str]:
        """Why this process is not ready; empty if it leads or could lead at once."""
        if self.waiting_for:
            return [self.waiting_for]
        unsynced = [] if self._caches.is_synced else ["the caches have not synced yet"]
        lasting = self._caches.problems if unsynced or self._have_problems_lasted() else []
        return [*unsynced, *lasting, *filter(None, [self.lease_problem])]

    def _have_problems_lasted(self) -> bool:
        """Whether every probe within the grace period found a problem."""
        now = self._clock()
        if not self._caches.problems:
            self._problems_since = None
        elif self._problems_since is None:
            self._problems_since = now
        since = self._problems_since
        return since is not None and now - since >= GRACE_SECONDS
