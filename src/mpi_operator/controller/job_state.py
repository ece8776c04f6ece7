"""What this process remembers about a job between two reconciles.

A restart loses all of it. That costs requests, repeated messages or a little time, and never
changes a verdict. It changes a final message in one case (`last_failure`):
docs/decisions/0004-what-is-remembered.md explains each part.
The reconciler owns the states; `remember` has the functions that compute the next one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from mpi_operator.api.types import MPIJob
from mpi_operator.kube.resources import Key, Resource

from .actions import Delete
from .problems import Problem


class LastFailure(msgspec.Struct, frozen=True, array_like=True):
    """How a launcher ended that failed last, and what it printed last."""

    exit: str = ""
    words: str = ""


NO_FAILURE = LastFailure()


@dataclass(frozen=True)
class HostChange:
    """Since when the running hosts are not those that the ConfigMap lists."""

    first: datetime
    last: datetime
    running: frozenset[int] = frozenset()
    listed: frozenset[int] = frozenset()


@dataclass(frozen=True)
class LogReading:
    """The workers that a launcher's pod waited for, and why, when its log was read."""

    uid: str  # of the pod
    at: datetime
    waits: Mapping[int, str] = field(default_factory=dict)
    read_at: datetime | None = None  # when reading last succeeded
    is_assumed: bool = False  # this process has not read it; the one before probably has


@dataclass(frozen=True)
class Refusal:
    """What the server refused, and until when it is not asked again."""

    problems: tuple[Problem, ...]
    targets: frozenset[tuple[Resource, Key]]
    times: int
    until: datetime
    generation: int  # the server may accept another spec


@dataclass(frozen=True)
class JobState:
    """About one job."""

    uid: str = ""
    # What policies read.
    keys_checked: datetime | None = None  # when the Secret was last known to exist
    host_change: HostChange | None = None
    has_launcher_pod: bool = False  # at the last reconcile
    launcher_pod_lost: datetime | None = None  # when its last pod was seen to be gone
    launcher_done_since: datetime | None = None  # when a pod of it was first seen to be done
    log_reading: LogReading | None = None
    last_failure: LastFailure = NO_FAILURE  # until the ConfigMap has it
    # What the steps read.
    launcher_restarts: int | None = None  # in its pod, at the last reconcile
    deleted: frozenset[Delete] = frozenset()  # the watch may not have confirmed these yet
    refusal: Refusal | None = None
    failing_since: datetime | None = None  # when reconciles began to end with errors
    is_failure_reported: bool = False
    stale_reconciles: int = 0  # in a row: the cluster was not as the caches had it
    version: str = ""  # the resourceVersion of our last write of the status
    counts_changed: datetime | None = None  # when they came to differ from the stored ones


class JobStates:
    """The states of all jobs."""

    def __init__(self) -> None:
        self._states: dict[Key, JobState] = {}

    def of(self, job: MPIJob) -> JobState:
        """The state of a job; a job that only has the same name has another one."""
        state = self.find(Key(job.metadata.namespace, job.metadata.name))
        return state if state and state.uid == job.metadata.uid else JobState(job.metadata.uid)

    def find(self, key: Key) -> JobState | None:
        return self._states.get(key)

    def put(self, job: MPIJob, state: JobState) -> JobState:
        self._states[Key(job.metadata.namespace, job.metadata.name)] = state
        return state

    def forget(self, key: Key) -> None:
        self._states.pop(key, None)
