"""Which worker pods are created and deleted while a job runs."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from mpi_operator.api import annotations
from mpi_operator.build import worker_pod
from mpi_operator.build.settings import Settings
from mpi_operator.kube.resources import PODS

from . import pod_state
from .actions import Action, Create, delete
from .cached_types import Pod
from .events import warning
from .observed import Observed
from .problems import Problem, ProblemReason
from .replacement import Replacements

_LOST_AFTER = timedelta(seconds=30)
_ADVICE = (
    "If it is, delete the pod by force, or set the annotation "
    f'{annotations.FORCE_DELETE_LOST_WORKERS}: "true" on the job'
)
_STAYS_AFTER = timedelta(minutes=1)
_STAYS = "It was deleted by force and is still there: look at its finalizers"
_FORCE = f"The pod is deleted by force ({annotations.FORCE_DELETE_LOST_WORKERS})"


def deletions(seen: Observed, replaced: Replacements, now: datetime) -> Iterator[Action]:
    """Remove surplus workers, those that failed, and those lost with their node if asked to."""
    for pod in seen.surplus_workers:
        if not pod_state.is_terminating(pod):
            yield delete(PODS, pod)
    for pod in replaced.failed:
        yield delete(PODS, pod)
    if _may_force(seen):
        for pod in lost(seen, now):
            forced = warning(ProblemReason.WORKER_LOST, f"{_about_loss(pod)}. {_FORCE}")
            yield delete(PODS, pod, by_force=True, events=(forced,))


def creations(
    seen: Observed, replaced: Replacements, settings: Settings, now: datetime
) -> Iterator[Action]:
    """Create the workers that are missing and may come now."""
    missing = [
        index
        for index in range(seen.job.spec.worker_count)
        if index not in seen.workers
        and index not in replaced.given_up
        and replaced.not_before.get(index, now) <= now
    ]
    for manifest in worker_pod.worker_pods(seen.job, missing, settings):
        yield Create(PODS, manifest)


def lost(seen: Observed, now: datetime) -> list[Pod]:
    """Workers that should be gone and whose node does not confirm it: most likely it is lost."""
    return [pod for pod in seen.workers.values() if pod_state.overdue(pod, now) > _LOST_AFTER]


def lost_worker_problems(seen: Observed, now: datetime) -> Iterator[Problem]:
    """Tell of workers that cannot be replaced, because Kubernetes waits for their node."""
    for pod in lost(seen, now):
        if not _may_force(seen):
            yield Problem(ProblemReason.WORKER_LOST, f"{_about_loss(pod)}. {_ADVICE}")
        elif pod_state.overdue(pod, now) > _STAYS_AFTER:
            yield Problem(ProblemReason.WORKER_LOST, f"{_about_loss(pod)}. {_STAYS}")


def time_to_loss(seen: Observed, now: datetime) -> timedelta | None:
    """In how long the first worker that is ending would count as lost."""
    ending = [pod for pod in seen.workers.values() if pod_state.is_terminating(pod)]
    limits = (_LOST_AFTER, _STAYS_AFTER)
    waits = [limit - pod_state.overdue(pod, now) for pod in ending for limit in limits]
    return min((wait for wait in waits if wait >= timedelta(0)), default=None)


def _may_force(seen: Observed) -> bool:
    return annotations.is_on(seen.job.metadata.annotations, annotations.FORCE_DELETE_LOST_WORKERS)


def _about_loss(pod: Pod) -> str:
    return (
        f"{pod.metadata.name} should be gone since {pod.metadata.deletion_timestamp}, but node "
        f"{pod.spec.node_name or '(none)'} does not confirm it: the node may be lost"
    )
