"""Cleans up a finished job, after its end is stored."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from mpi_operator.api import annotations
from mpi_operator.api.profiles import profile
from mpi_operator.api.types import CleanPodPolicy
from mpi_operator.build import pod_group
from mpi_operator.build.settings import Settings
from mpi_operator.kube.resources import JOBS, PODS, Key

from . import pod_state
from .actions import Action, Delete, delete
from .cached_types import MPI_JOBS, Pod
from .decision import Decision, ahead
from .launcher import stopping_actions
from .observed import Observed


def clean_up(seen: Observed, settings: Settings, now: datetime) -> Decision:
    """Delete what the policies say, by owner: that includes pods of a formerly larger size."""
    policy = seen.job.spec.run_policy.clean_pod_policy
    wait = _time_to_live(seen, now)
    is_expired = wait is not None and wait <= timedelta(0)
    actions = (
        *(_launcher_deletion(seen) if _is_launcher_cleaned(seen) else stopping_actions(seen)),
        *(delete(PODS, pod) for pod in seen.worker_pods if _is_cleaned(pod, policy)),
        *pod_group_deletion(seen, settings),
        *(_expiry(seen) if is_expired else ()),
    )
    return Decision(actions, requeue_after=ahead(wait))


def pod_group_deletion(seen: Observed, settings: Settings) -> Iterator[Action]:
    """Delete the PodGroup: no pod waits for it."""
    group = seen.pod_group
    if settings.gang_scheduler and group is not None and not group.metadata.deletion_timestamp:
        yield delete(pod_group.resource(settings), group)


def _time_to_live(seen: Observed, now: datetime) -> timedelta | None:
    """How long `ttlSecondsAfterFinished` still keeps the job; None if it is kept forever."""
    ttl, completed = (
        seen.job.spec.run_policy.ttl_seconds_after_finished,
        seen.job.status.completion_time,
    )
    is_left = seen.launcher or seen.former_launcher_pods or _ttl_deletes_job(seen)
    if ttl is None or completed is None or not is_left:
        return None
    return completed + timedelta(seconds=ttl) - now


def _expiry(seen: Observed) -> Iterator[Action]:
    if _ttl_deletes_job(seen):
        metadata = seen.job.metadata
        yield Delete(MPI_JOBS, Key(metadata.namespace, metadata.name), metadata.uid)
    elif not _is_launcher_cleaned(seen):
        yield from _launcher_deletion(seen)


def _launcher_deletion(seen: Observed) -> Iterator[Action]:
    """Delete the launcher, and with it its pods, and those of the launchers before it."""
    for pod in seen.former_launcher_pods:
        if not pod_state.is_terminating(pod):
            yield delete(PODS, pod)
    if seen.launcher is not None and not seen.launcher.metadata.deletion_timestamp:
        yield delete(PODS if seen.bare_launcher else JOBS, seen.launcher)


def _is_launcher_cleaned(seen: Observed) -> bool:
    """Whether the policy deletes the launcher. `Running` only stops it: its pods keep logs."""
    policy = seen.job.spec.run_policy.clean_pod_policy
    return profile(seen.job).cleans_launcher and policy is CleanPodPolicy.ALL


def _ttl_deletes_job(seen: Observed) -> bool:
    chosen = annotations.is_on(seen.job.metadata.annotations, annotations.TTL_DELETES_JOB)
    return chosen or profile(seen.job).ttl_deletes_job


def _is_cleaned(pod: Pod, policy: CleanPodPolicy) -> bool:
    if policy is CleanPodPolicy.NONE or pod_state.is_terminating(pod):
        return False
    return policy is CleanPodPolicy.ALL or not pod_state.has_ended(pod)
