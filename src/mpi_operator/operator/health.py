"""What the probes are told: whether to restart this process, and whether to count on it."""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

# A server that restarts, or a watch that breaks, is mended sooner than that.
PATIENCE_SECONDS = 30.0

NOT_ASKED_YET = "the API server has not been asked yet"
STOPPING = "the operator is stopping"


class Caches(Protocol):
    """What is known of the cluster."""

    @property
    def is_synced(self) -> bool: ...

    @property
    def problems(self) -> Sequence[str]: ...


class Candidate(Protocol):
    """Who competes for the lease."""

    @property
    def is_leader(self) -> bool: ...

    @property
    def why_lost(self) -> str: ...


class Health:
    """Filled by the program as it goes, read by the endpoints. All answers are sentences."""

    def __init__(
        self, caches: Caches, candidate: Candidate, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.waiting_for = NOT_ASKED_YET  # what has to happen before there is anything else to say
        self.lock_trouble = ""  # why this process cannot even stand by
        self._caches = caches
        self._candidate = candidate
        self._clock = clock
        self._troubled_since: float | None = None

    def illnesses(self) -> list[str]:
        """Why this process cannot recover; empty when all is well."""
        # Asking notices that a lease has run out, also where its thread no longer says so.
        if self._candidate.is_leader or not self._candidate.why_lost:
            return []
        return [f"this process will never lead again: {self._candidate.why_lost}"]

    def obstacles(self) -> list[str]:
        """Why not to count on this process now; empty when it leads or could lead at once."""
        if self.waiting_for:
            return [self.waiting_for]
        behind = [] if self._caches.is_synced else ["the caches are still being read"]
        lasting = self._caches.problems if behind or self._is_trouble_lasting() else []
        return [*behind, *lasting, *filter(None, [self.lock_trouble])]

    def _is_trouble_lasting(self) -> bool:
        """Whether there has been trouble each time somebody asked, for long enough."""
        now = self._clock()
        if not self._caches.problems:
            self._troubled_since = None
        elif self._troubled_since is None:
            self._troubled_since = now
        since = self._troubled_since
        return since is not None and now - since >= PATIENCE_SECONDS
