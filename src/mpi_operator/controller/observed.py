"""What is known about one job at one moment, and the questions that policies ask of it.

Only objects that the job controls are in here. Who else has a name that the job needs is in
`taken`: nobody touches those.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from mpi_operator.api import conditions, names
from mpi_operator.api.types import MPIJob
from mpi_operator.build import hostfile, worker_start
from mpi_operator.build.config_map import DISCOVER_SCRIPT

from . import pod_state
from .cached_types import LauncherJob, Pod, StoredConfigMap, StoredPodGroup, StoredService


@dataclass(frozen=True)
class Taken:
    """A name that the job needs and somebody else has."""

    kind: str
    name: str

    def __str__(self) -> str:
        return (
            f'Resource "{self.name}" of Kind "{self.kind}" already exists and is not managed by '
            "MPIJob"
        )


@dataclass(frozen=True)
class HostChange:
    """Since when the running hosts are not those that the ConfigMap lists."""

    first: datetime
    last: datetime


@dataclass(frozen=True)
class LogReading:
    """For which workers a launcher's pod waited, and why, when it was listened to."""

    uid: str
    at: datetime
    waits: Mapping[int, str] = field(default_factory=dict)
    read_at: datetime | None = None  # when the log could be read last


@dataclass(frozen=True)
class Observed:
    """A job and what there is of it."""

    job: MPIJob
    validation_errors: str = ""  # why it cannot run, where it is not valid
    launcher: LauncherJob | None = None
    launcher_pods: tuple[Pod, ...] = ()
    stray_launcher_pods: tuple[Pod, ...] = ()  # of a launcher that no cache knows
    worker_pods: tuple[Pod, ...] = ()
    service: StoredService | None = None
    config_map: StoredConfigMap | None = None
    pod_group: StoredPodGroup | None = None
    taken: tuple[Taken, ...] = ()
    priorities: Mapping[str, int] = field(default_factory=dict)  # of PriorityClasses
    # What the process remembers between two looks. Losing it costs time, never correctness.
    keys_checked: datetime | None = None  # when the Secret was last seen to be there
    host_change: HostChange | None = None
    last_words: str = ""  # of the launcher, in case its pod is gone
    last_exit: str = ""  # how it ended, in that case
    launcher_pod_lost: datetime | None = None  # when its last pod was seen to be gone
    log_reading: LogReading | None = None
    launcher_done_since: datetime | None = None  # when a pod of it was first seen to be done

    @property
    def is_finished(self) -> bool:
        return conditions.is_finished(self.job.status.conditions)

    @property
    def is_suspended(self) -> bool:
        return self.job.spec.run_policy.suspend

    @property
    def launcher_is_under_way(self) -> bool:
        """Whether the launcher has been let loose: what happens to the job is up to it then."""
        return self.launcher is not None and not self.launcher.spec.suspend

    @cached_property
    def successful_launcher(self) -> Pod | None:
        """The launcher's pod that has done its work."""
        ended = filter(pod_state.has_done_its_work, self.launcher_pods)
        return max(ended, key=pod_state.by_age, default=None)

    @cached_property
    def workers(self) -> Mapping[int, Pod]:
        """The pods that are one of the workers that the job should have, by number and in order.

        Caches give pods in any order; what is told about them must not change with it.
        """
        numbered = [
            (index, pod)
            for pod in self.worker_pods
            if (index := names.worker_index(self.job, pod.metadata.name)) is not None
            and index < self.job.spec.worker_count
        ]
        return dict(sorted(numbered, key=lambda item: item[0]))

    @cached_property
    def surplus_workers(self) -> tuple[Pod, ...]:
        """Worker pods that the job should not have (any more)."""
        wanted = {pod.metadata.uid for pod in self.workers.values()}
        return tuple(pod for pod in self.worker_pods if pod.metadata.uid not in wanted)

    @cached_property
    def running_hosts(self) -> frozenset[int]:
        """The workers that ranks can be started on."""
        return frozenset(index for index, pod in self.workers.items() if pod_state.is_running(pod))

    @cached_property
    def listed_hosts(self) -> frozenset[int]:
        """The workers that the stored script tells launchers about."""
        data = self.config_map.data if self.config_map else {}
        return hostfile.discovered(self.job, data.get(DISCOVER_SCRIPT, ""))

    @property
    def probed_container(self) -> str:
        """The container of each worker that counts as ready when its sshd listens, if any."""
        worker = None if self.validation_errors else self.job.spec.worker
        return worker_start.probed_container(worker) if worker else ""

    @property
    def are_workers_running(self) -> bool:
        return len(self.running_hosts) == self.job.spec.worker_count

    @property
    def are_workers_ready(self) -> bool:
        ready = sum(pod_state.is_ready(pod) for pod in self.workers.values())
        return ready == self.job.spec.worker_count

    def is_taken(self, kind: str, name: str) -> bool:
        return Taken(kind, name) in self.taken
