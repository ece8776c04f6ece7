"""From the caches to what is known about one job."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, TypeVar

from mpi_operator.api import labels, names
from mpi_operator.api.decode import decode_job, decode_leniently
from mpi_operator.api.field_errors import InvalidJob
from mpi_operator.api.types import Manager, MPIJob
from mpi_operator.kube.lru import LRU
from mpi_operator.kube.objects import Object
from mpi_operator.kube.resources import JOBS, Key, Manifest

from .bare_launcher import as_job, bare_launcher
from .cached_types import LauncherJob, Pod, StoredJob, is_controlled_by
from .caches import Cached, Caches
from .job_state import JobState
from .observed import Observed, Taken
from .pinned_profile import pinned
from .retry_count import stored_retries

T = TypeVar("T", bound=Object)


_MOST_DECODED = 256  # of some KB each


class _Decoded(NamedTuple):
    """A job, and what is wrong with it."""

    job: MPIJob
    validation_errors: str = ""


class Observer:
    """Collects what the caches know about a job. It reads only, and never waits."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        # A job is reconciled much more often than it changes.
        self._decoded: LRU[tuple[str, str], _Decoded | None] = LRU(_MOST_DECODED)

    def observe(self, key: Key) -> Observed | None:
        """What the caches know about a job; None where there is none that this operator manages."""
        stored = self._caches.jobs.get(key)
        if stored is None or stored.metadata.deletion_timestamp:
            return None
        version = (stored.metadata.uid, stored.metadata.resource_version)
        decoded = self._decoded.get_or_create(version, lambda: _decode(stored))
        return self._observe(*decoded, JobState(stored.metadata.uid)) if decoded else None

    def observe_again(self, seen: Observed) -> Observed:
        """What the caches know now about the objects of a job. The job itself is as it was."""
        return self._observe(seen.job, seen.validation_errors, seen.state)

    def _observe(self, job: MPIJob, validation_errors: str, state: JobState) -> Observed:
        key = Key(job.metadata.namespace, job.metadata.name)
        pods = self._caches.pods.of_job(key)
        launcher = self._owned(self._caches.launchers, job, names.launcher(job))
        bare = None if launcher else bare_launcher(pods, job)
        config_map = self._owned(self._caches.config_maps, job, names.config_map(job))
        retries = stored_retries(config_map)
        seen = Observed(
            job=pinned(job, config_map),
            validation_errors=validation_errors,
            launcher=as_job(bare) if bare else launcher,
            launcher_pods=(bare,) if bare else tuple(_launcher_pods(pods, launcher)),
            bare_launcher=bare,
            retries=retries,
            former_launcher_pods=tuple(pod for pod in pods if _is_former_launcher(pod, job)),
            stray_launcher_pods=() if launcher else tuple(_stray_pods(pods, job, retries.uid)),
            worker_pods=tuple(pod for pod in pods if _is_worker(pod, job)),
            service=self._owned(self._caches.services, job, names.service(job)),
            config_map=config_map,
            pod_group=self._owned(self._caches.pod_groups, job, names.pod_group(job)),
            taken=tuple(self._taken(job)),
            unreadable=tuple(self._caches.unreadable(key)),
            priorities=self._priorities(),
            state=state,
        )
        strangers = tuple(_taken_pods(seen, pods))
        seen = replace(seen, taken=(*seen.taken, *strangers)) if strangers else seen
        is_retired = launcher is not None and launcher.metadata.uid == retries.uid
        return seen.retiring(retries) if is_retired and not seen.is_finished else seen

    def _owned(self, cached: Cached[T] | None, job: MPIJob, name: str) -> T | None:
        found = cached.get(Key(job.metadata.namespace, name)) if cached else None
        return found if found is not None and is_controlled_by(found, job) else None

    def _taken(self, job: MPIJob) -> Iterator[Taken]:
        """Names that others have, as far as the caches know: they hold only what has our label."""
        for cached, name in (
            (self._caches.services, names.service(job)),
            (self._caches.config_maps, names.config_map(job)),
            (self._caches.launchers, names.launcher(job)),
            (self._caches.pod_groups, names.pod_group(job)),
        ):
            found = cached.get(Key(job.metadata.namespace, name)) if cached else None
            if cached and found is not None and not is_controlled_by(found, job):
                yield Taken(cached.resource.kind, name)

    def _priorities(self) -> dict[str, int]:
        classes = self._caches.priority_classes
        return {each.metadata.name: each.value for each in classes} if classes else {}


def _decode(stored: StoredJob) -> _Decoded | None:
    """The job; None where another controller manages it."""
    manifest = stored.manifest()
    if _is_managed_by_others(manifest):
        return None
    try:
        return _Decoded(decode_job(manifest))
    except InvalidJob as invalid:
        return _Decoded(decode_leniently(manifest), _about_the_job(invalid))


def _taken_pods(seen: Observed, pods: list[Pod]) -> Iterator[Taken]:
    """Pods of others that have the name of a worker."""
    for pod in pods:
        if is_controlled_by(pod, seen.job):
            continue
        if names.worker_index(seen.job, pod.metadata.name) in seen.worker_indexes:
            yield Taken("Pod", pod.metadata.name)


def _launcher_pods(pods: list[Pod], launcher: LauncherJob | None) -> Iterator[Pod]:
    for pod in pods:
        owner = pod.metadata.controller
        if launcher is not None and owner is not None and owner.uid == launcher.metadata.uid:
            yield pod


def _stray_pods(pods: list[Pod], job: MPIJob, retired: str) -> Iterator[Pod]:
    """Pods of a launcher that no cache has: the Go operator labels only the pods, not the Job."""
    for pod in pods:
        owner = pod.metadata.controller
        if owner is None or owner.uid == retired:
            continue
        if (owner.kind, owner.name) == (JOBS.kind, names.launcher(job)):
            yield pod


def _is_former_launcher(pod: Pod, job: MPIJob) -> bool:
    """Whether a pod is of a launcher that was retried, so that the job itself keeps its log."""
    is_launcher = labels.role_of(pod.metadata.labels) is labels.Role.LAUNCHER
    return is_launcher and is_controlled_by(pod, job) and pod.metadata.name != names.launcher(job)


def _is_worker(pod: Pod, job: MPIJob) -> bool:
    role = labels.role_of(pod.metadata.labels)
    return role is labels.Role.WORKER and is_controlled_by(pod, job)


def _about_the_job(invalid: InvalidJob) -> str:
    """The errors that its author can fix; the operator rewrites the status itself."""
    mendable = (each for each in invalid.errors if each.path.keys[:1] != ("status",))
    return "; ".join(map(str, mendable))


def _is_managed_by_others(manifest: Manifest) -> bool:
    """Checked first: errors in such a job are not ours to report."""
    spec = manifest["spec"]
    policy = spec.get("runPolicy") if isinstance(spec, dict) else None
    manager = policy.get("managedBy") if isinstance(policy, dict) else None
    return bool(manager) and manager != Manager.MPI_OPERATOR
