"""What this process remembers about a job between two looks.

Nothing here is needed for correctness, for any of it may be lost at any time: it saves requests,
writes and repeated words.
"""

from dataclasses import dataclass, field
from datetime import datetime

from mpi_operator.api.types import MPIJob
from mpi_operator.kube.resources import Key, Resource

from .actions import Delete
from .observed import HostChange, LogReading
from .problems import Problem


@dataclass
class JobState:
    """About one job."""

    uid: str
    keys_checked: datetime | None = None  # when its Secret was last seen to be there
    last_words: str = ""  # of its launcher
    last_exit: str = ""  # how that ended
    has_launcher_pod: bool = False  # at the last look
    launcher_pod_lost: datetime | None = None  # when we saw that it has none any more
    launcher_done_since: datetime | None = None  # when we saw that one has done its work
    log_reading: LogReading | None = None  # of its launcher
    launcher_restarts: int | None = None  # in its pod, at the last look
    hosts: frozenset[int] = frozenset()  # that ran when host_change was noted
    host_change: HostChange | None = None
    deleted: set[Delete] = field(default_factory=set)  # what the watch may not have told of yet
    refusal: "Refusal | None" = None
    failing_since: datetime | None = None  # when looks at it began to end with errors
    is_failure_told: bool = False
    stale_looks: int = 0  # in a row: how often the world was not as the caches had it
    version: str = ""  # the resourceVersion of our last write of its status
    counts_changed: datetime | None = None  # when they came to differ from those on record


@dataclass(frozen=True)
class Refusal:
    """What the server did not take, and until when it is not asked again."""

    problems: tuple[Problem, ...]
    targets: frozenset[tuple[Resource, Key]]
    times: int
    until: datetime
    generation: int  # another spec may be taken


class JobStates:
    """About every job that there is."""

    def __init__(self) -> None:
        self._memories: dict[Key, JobState] = {}

    def of(self, job: MPIJob) -> JobState:
        """The memory of a job; one that only has the same name is another one."""
        key, uid = Key(job.metadata.namespace, job.metadata.name), job.metadata.uid
        memory = self._memories.get(key)
        if memory is None or memory.uid != uid:
            memory = self._memories[key] = JobState(uid)
        return memory

    def find(self, key: Key) -> JobState | None:
        return self._memories.get(key)

    def forget(self, key: Key) -> None:
        self._memories.pop(key, None)
