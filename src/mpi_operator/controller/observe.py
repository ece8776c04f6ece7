"""From caches to what is known about one job. Reads only, and never waits.

Besides the caches it knows what this process remembers: when hosts began to come and go, and what
a launcher said last. Losing that costs time, never correctness.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple, TypeVar

from mpi_operator.api import labels, names
from mpi_operator.api.decode import decode_job, decode_leniently
from mpi_operator.api.field_errors import InvalidJob
from mpi_operator.api.types import Manager, MPIJob
from mpi_operator.kube.lru import LRU
from mpi_operator.kube.objects import Object
from mpi_operator.kube.resources import JOBS, Key, Manifest

from . import pod_state
from .cached_types import LauncherJob, Pod, StoredJob, is_controlled_by
from .caches import Cached, Caches
from .clock import Clock, utc_now
from .job_state import JobState, JobStates
from .launcher_log import known_reading
from .observed import HostChange, LogReading, Observed, Taken

T = TypeVar("T", bound=Object)


_MOST_READINGS = 256  # of some KB each


class _Reading(NamedTuple):
    """A job as it was read, and what is wrong with it."""

    job: MPIJob
    validation_errors: str = ""


class Observer:
    """Looks at jobs."""

    def __init__(
        self,
        caches: Caches,
        memories: JobStates,
        clock: Clock = utc_now,
    ) -> None:
        self._caches = caches
        self._memories = memories
        self._clock = clock
        # A job is looked at much more often than it changes.
        self._readings: LRU[tuple[str, str], _Reading | None] = LRU(_MOST_READINGS)

    def observe(self, key: Key) -> Observed | None:
        """What is known about a job; None where there is none that is ours to look after."""
        stored = self._caches.jobs.get(key)
        if stored is None or stored.metadata.deletion_timestamp:
            return None
        version = (stored.metadata.uid, stored.metadata.resource_version)
        reading = self._readings.recall(version, lambda: _read(stored))
        return self.around(*reading) if reading else None

    def around(self, job: MPIJob, validation_errors: str = "") -> Observed:
        """What is known about what a job is made of."""
        memory, now = self._memories.of(job), self._clock()
        launcher = self._owned(self._caches.launchers, job, names.launcher(job))
        pods = self._caches.pods.of_job(Key(job.metadata.namespace, job.metadata.name))
        launcher_pods = tuple(_launcher_pods(pods, launcher))
        seen = Observed(
            job=job,
            validation_errors=validation_errors,
            launcher=launcher,
            launcher_pods=launcher_pods,
            stray_launcher_pods=() if launcher else tuple(_stray_launcher_pods(pods, job)),
            worker_pods=tuple(_worker_pods(pods, job)),
            service=self._owned(self._caches.services, job, names.service(job)),
            config_map=self._owned(self._caches.config_maps, job, names.config_map(job)),
            pod_group=self._owned(self._caches.pod_groups, job, names.pod_group(job)),
            taken=tuple(self._taken(job, pods)),
            priorities=self._priorities(),
            keys_checked=memory.keys_checked,
            last_words=_noted_words(memory, launcher_pods),
            last_exit=memory.last_exit,
            launcher_pod_lost=_noted_loss(memory, launcher_pods, now),
        )
        return replace(
            seen,
            host_change=_noted_change(memory, seen, now),
            log_reading=_heard(memory, seen, now),
            launcher_done_since=_noted_success(memory, seen, now),
        )

    def _owned(self, cached: Cached[T] | None, job: MPIJob, name: str) -> T | None:
        found = cached.get(Key(job.metadata.namespace, name)) if cached else None
        return found if found is not None and is_controlled_by(found, job) else None

    def _taken(self, job: MPIJob, pods: list[Pod]) -> Iterator[Taken]:
        """Names that others have, as far as caches know: they hold only what has our label."""
        for cached, name in (
            (self._caches.services, names.service(job)),
            (self._caches.config_maps, names.config_map(job)),
            (self._caches.launchers, names.launcher(job)),
            (self._caches.pod_groups, names.pod_group(job)),
        ):
            found = cached.get(Key(job.metadata.namespace, name)) if cached else None
            if cached and found is not None and not is_controlled_by(found, job):
                yield Taken(cached.resource.kind, name)
        for pod in pods:
            index = names.worker_index(job, pod.metadata.name)
            is_needed = index is not None and index < job.spec.worker_count
            if is_needed and not is_controlled_by(pod, job):
                yield Taken("Pod", pod.metadata.name)

    def _priorities(self) -> dict[str, int]:
        classes = self._caches.priority_classes
        return {each.metadata.name: each.value for each in classes} if classes else {}


def _read(stored: StoredJob) -> _Reading | None:
    """What a job says; None where it is not ours to look after."""
    manifest = stored.manifest()
    if _is_managed_by_others(manifest):
        return None
    try:
        return _Reading(decode_job(manifest))
    except InvalidJob as invalid:
        return _Reading(decode_leniently(manifest), _about_the_job(invalid))


def _noted_words(memory: JobState, launcher_pods: tuple[Pod, ...]) -> str:
    """What the launcher said last. With a Job that gives up, its pod goes before we look."""
    oldest_first = sorted(launcher_pods, key=pod_state.by_age)
    for pod in oldest_first:
        memory.last_words = pod_state.last_words(pod) or memory.last_words
        memory.last_exit = pod_state.last_exit(pod) or memory.last_exit
    return memory.last_words


def _noted_loss(memory: JobState, launcher_pods: tuple[Pod, ...], now: datetime) -> datetime | None:
    """When the launcher lost its last pod, where we saw it have one: it may get another soon."""
    if launcher_pods:
        memory.launcher_pod_lost = None
    elif memory.has_launcher_pod:
        memory.launcher_pod_lost = now
    memory.has_launcher_pod = bool(launcher_pods)
    return memory.launcher_pod_lost


def _noted_success(memory: JobState, seen: Observed, now: datetime) -> datetime | None:
    """Since when the launcher is known to have done its work, by our own clock."""
    since = memory.launcher_done_since or now
    memory.launcher_done_since = since if seen.successful_launcher else None
    return memory.launcher_done_since


def _heard(memory: JobState, seen: Observed, now: datetime) -> LogReading | None:
    """What the launcher that runs has said."""
    memory.log_reading = known_reading(memory.log_reading, seen, now)
    return memory.log_reading


def _noted_change(memory: JobState, seen: Observed, now: datetime) -> HostChange | None:
    """Since when, and until when last, hosts came and went that are not on record."""
    running = seen.running_hosts
    if running == seen.listed_hosts:
        memory.host_change = None
    elif memory.host_change is None:
        memory.host_change = HostChange(now, now)
    elif memory.hosts != running:
        memory.host_change = HostChange(memory.host_change.first, now)
    memory.hosts = running
    return memory.host_change


def _launcher_pods(pods: list[Pod], launcher: LauncherJob | None) -> Iterator[Pod]:
    uid = launcher.metadata.uid if launcher else None
    for pod in pods:
        owner = pod.metadata.controller
        if owner is not None and owner.uid == uid:
            yield pod


def _stray_launcher_pods(pods: list[Pod], job: MPIJob) -> Iterator[Pod]:
    """Pods that name a launcher that caches do not have: the Go operator labels only the pods."""
    for pod in pods:
        owner = pod.metadata.controller
        if owner is not None and (owner.kind, owner.name) == (JOBS.kind, names.launcher(job)):
            yield pod


def _worker_pods(pods: list[Pod], job: MPIJob) -> Iterator[Pod]:
    for pod in pods:
        if pod.metadata.labels.get(labels.JOB_ROLE) == labels.Role.WORKER and is_controlled_by(
            pod, job
        ):
            yield pod


def _about_the_job(invalid: InvalidJob) -> str:
    """What its author can do something about: a status is ours, and is written anew."""
    told = (each for each in invalid.errors if each.path.keys[:1] != ("status",))
    return "; ".join(map(str, told))


def _is_managed_by_others(manifest: Manifest) -> bool:
    """Asked before anything else: what is wrong with such a job is not ours to tell."""
    spec = manifest["spec"]
    policy = spec.get("runPolicy") if isinstance(spec, dict) else None
    manager = policy.get("managedBy") if isinstance(policy, dict) else None
    return bool(manager) and manager != Manager.MPI_OPERATOR
