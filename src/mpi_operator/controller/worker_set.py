"""Which worker pods are created and deleted while a job runs."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from mpi_operator.api import annotations
from mpi_operator.build import worker_pod
from mpi_operator.build.settings import Settings
from mpi_operator.kube.resources import PODS

from . import pod_state
from .actions import Action, Create, delete
from .cached_types import Pod
from .decision import Decision
from .events import warning
from .observed import Observed
from .problems import Problem, ProblemReason
from .replacement import Replacements

_LOST_AFTER = timedelta(seconds=30)
_STAYS_AFTER = timedelta(minutes=1)
_ADVICE = (
    "If the node is lost, delete the pod by force, or set the annotation "
    f'{annotations.FORCE_DELETE_LOST_WORKERS}: "true" on the job'
)
_STAYS = "It was deleted by force and still exists: check its finalizers"
_FORCE = f"The operator deletes it by force ({annotations.FORCE_DELETE_LOST_WORKERS})"


def deletions(
    seen: Observed, replaced: Replacements, remaining: Mapping[str, timedelta]
) -> Decision:
    """Remove surplus workers and those that failed.

    A surplus worker that runs may have some time left, by the uid of its pod, so that the launcher
    can do without it first.
    """
    surplus = [pod for pod in seen.surplus_workers if not pod_state.is_terminating(pod)]
    waits = [remaining[pod.metadata.uid] for pod in surplus if pod.metadata.uid in remaining]
    gone = [pod for pod in surplus if pod.metadata.uid not in remaining]
    return Decision(
        tuple(delete(PODS, pod) for pod in (*gone, *replaced.failed)),
        requeue_after=min(waits, default=None),
    )


def creations(
    seen: Observed, replaced: Replacements, settings: Settings, now: datetime
) -> Decision:
    """Create the workers that are missing, as soon as they may be created."""
    missing = [
        index
        for index in sorted(seen.worker_indexes)
        if index not in seen.workers
        and index not in replaced.given_up
        and replaced.not_before.get(index, now) <= now
    ]
    waits = (when - now for when in replaced.not_before.values() if when > now)
    manifests = worker_pod.worker_pods(seen.job, missing, settings)
    return Decision(
        tuple(Create(PODS, manifest) for manifest in manifests),
        requeue_after=min(waits, default=None),
    )


def lost_with_their_node(seen: Observed, now: datetime) -> Decision:
    """Report workers that Kubernetes cannot remove, because it waits for their node.

    They are deleted by force where the job asks for it.
    """
    may_force = annotations.is_on(
        seen.job.metadata.annotations, annotations.FORCE_DELETE_LOST_WORKERS
    )
    actions: list[Action] = []
    problems: list[Problem] = []
    waits: list[timedelta] = []
    for pod in filter(pod_state.is_terminating, seen.workers.values()):
        overdue = pod_state.overdue(pod, now)
        waits += [limit - overdue for limit in (_LOST_AFTER, _STAYS_AFTER) if limit >= overdue]
        if overdue > _LOST_AFTER and may_force:
            forced = warning(ProblemReason.WORKER_LOST, f"{_about_loss(pod)}. {_FORCE}")
            actions.append(delete(PODS, pod, by_force=True, events=(forced,)))
        if overdue > (_STAYS_AFTER if may_force else _LOST_AFTER):
            advice = _STAYS if may_force else _ADVICE
            problems.append(Problem(ProblemReason.WORKER_LOST, f"{_about_loss(pod)}. {advice}"))
    return Decision(tuple(actions), tuple(problems), min(waits, default=None))


def _about_loss(pod: Pod) -> str:
    return (
        f"Worker {pod.metadata.name} should have terminated by {pod.metadata.deletion_timestamp}; "
        f"node {pod.spec.node_name or '(none)'} has not confirmed the deletion"
    )
