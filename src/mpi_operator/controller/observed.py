"""What is known about one job at one moment, and the questions that policies ask of it.

It has only objects that the job controls. Other objects that have a name the job needs are in
`taken`, and are never touched.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from mpi_operator.api import annotations, conditions, names
from mpi_operator.api.types import MPIJob
from mpi_operator.build import hostfile, worker_start
from mpi_operator.build.config_map import DISCOVER_SCRIPT, HOSTFILE

from . import pod_state
from .cached_types import LauncherJob, Pod, StoredConfigMap, StoredPodGroup, StoredService
from .job_state import JobState
from .retry_count import NO_RETRIES, LauncherRetries
from .worker_indexes import worker_indexes


@dataclass(frozen=True)
class Taken:
    """A name that the job needs and another object has."""

    kind: str
    name: str

    def __str__(self) -> str:
        return (
            f'Resource "{self.name}" of Kind "{self.kind}" already exists and is not managed by '
            "MPIJob"
        )


@dataclass(frozen=True)
class Retired:
    """A launcher that lost a worker, and that the next one replaces."""

    job: LauncherJob
    pods: tuple[Pod, ...]
    why: str = ""  # empty once that is counted


@dataclass(frozen=True)
class Observed:
    """A job and its objects."""

    job: MPIJob
    validation_errors: str = ""  # why the job is invalid
    launcher: LauncherJob | None = None
    launcher_pods: tuple[Pod, ...] = ()
    bare_launcher: Pod | None = None  # the launcher, where it is a pod and not a Job
    retries: LauncherRetries = NO_RETRIES
    retired: Retired | None = None  # the launcher before this one, if it still exists
    former_launcher_pods: tuple[Pod, ...] = ()  # of launchers that no longer exist
    stray_launcher_pods: tuple[Pod, ...] = ()  # of a launcher that no cache knows
    worker_pods: tuple[Pod, ...] = ()
    service: StoredService | None = None
    config_map: StoredConfigMap | None = None
    pod_group: StoredPodGroup | None = None
    taken: tuple[Taken, ...] = ()
    unreadable: tuple[str, ...] = ()  # objects of the job that cannot be decoded
    priorities: Mapping[str, int] = field(default_factory=dict)  # of PriorityClasses
    state: JobState = field(default_factory=JobState)  # what this process remembers

    @property
    def is_finished(self) -> bool:
        return conditions.is_finished(self.job.status.conditions)

    @property
    def is_suspended(self) -> bool:
        return self.job.spec.run_policy.suspend

    @property
    def launcher_is_under_way(self) -> bool:
        """Whether the launcher was started: from then on it decides the outcome of the job."""
        return self.launcher is not None and not self.launcher.spec.suspend

    def retiring(self, retries: LauncherRetries, why: str = "") -> "Observed":
        """The same job without its launcher, which the next one replaces."""
        if self.launcher is None:
            return self
        retired = Retired(self.launcher, self.launcher_pods, why)
        return replace(self, launcher=None, launcher_pods=(), retired=retired, retries=retries)

    @cached_property
    def successful_launcher(self) -> Pod | None:
        """The launcher's pod that has completed."""
        ended = filter(pod_state.has_completed, self.launcher_pods)
        return max(ended, key=pod_state.by_age, default=None)

    @cached_property
    def stored_indexes(self) -> frozenset[int]:
        """The workers in the stored hostfile."""
        data = self.config_map.data if self.config_map else {}
        return hostfile.hosts_in(self.job, data.get(HOSTFILE, ""))

    @cached_property
    def worker_indexes(self) -> frozenset[int]:
        """The numbers of the workers that the job should have.

        A job that is resumed starts over: queues that place pods expect numbers without gaps.
        """
        wanted = self.job.spec.worker_count
        if self.is_suspended:
            return frozenset(range(wanted))
        costs = {
            index: annotations.deletion_cost(pod.metadata.annotations)
            for pod in self.worker_pods
            if (index := names.worker_index(self.job, pod.metadata.name)) is not None
        }
        return worker_indexes(self.stored_indexes, wanted, costs)

    @cached_property
    def workers(self) -> Mapping[int, Pod]:
        """The pods of the workers that the job should have, by number and in order.

        Caches give pods in any order; what is reported about them must not change with it.
        """
        numbered = [
            (index, pod)
            for pod in self.worker_pods
            if (index := names.worker_index(self.job, pod.metadata.name)) is not None
            and index in self.worker_indexes
        ]
        return dict(sorted(numbered, key=lambda item: item[0]))

    @cached_property
    def surplus_workers(self) -> tuple[Pod, ...]:
        """Worker pods that the job should not have, or no longer."""
        wanted = {pod.metadata.uid for pod in self.workers.values()}
        return tuple(pod for pod in self.worker_pods if pod.metadata.uid not in wanted)

    @cached_property
    def running_hosts(self) -> frozenset[int]:
        """The workers that ranks can be started on."""
        return frozenset(index for index, pod in self.workers.items() if pod_state.is_running(pod))

    @cached_property
    def listed_hosts(self) -> frozenset[int]:
        """The workers that the stored discovery script lists."""
        data = self.config_map.data if self.config_map else {}
        return hostfile.discovered(self.job, data.get(DISCOVER_SCRIPT, ""))

    @property
    def probed_container(self) -> str:
        """The container of each worker that counts as ready when its sshd listens, if any."""
        worker = None if self.validation_errors else self.job.spec.worker
        return worker_start.probed_container(self.job, worker) if worker else ""

    @property
    def are_workers_running(self) -> bool:
        return len(self.running_hosts) == self.job.spec.worker_count

    @property
    def are_workers_ready(self) -> bool:
        ready = sum(pod_state.is_ready(pod) for pod in self.workers.values())
        return ready == self.job.spec.worker_count

    def is_taken(self, kind: str, name: str) -> bool:
        return Taken(kind, name) in self.taken
