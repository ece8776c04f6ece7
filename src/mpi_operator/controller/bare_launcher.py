"""Launchers that are bare pods: training-operator creates a Pod where we create a Job.

Such a launcher is adopted as it is and judged by its phase. The other policies see it as the Job
that it would be; only what stops or deletes it has to know. Kubernetes limits the time and the
restarts of a Job, but not of a pod: that is done here.
"""

from collections.abc import Iterable
from datetime import datetime

from mpi_operator.api import names
from mpi_operator.api.types import MPIJob

from . import pod_state
from .cached_types import (
    JobCondition,
    LauncherJob,
    LauncherStatus,
    Pod,
    is_controlled_by,
    moment,
)
from .deadline import active_deadline
from .decision import Decision
from .observed import Observed
from .problems import Problem, ProblemReason

_VERDICTS = {"Succeeded": "Complete", "Failed": "Failed"}


def bare_launcher(pods: Iterable[Pod], job: MPIJob) -> Pod | None:
    """The pod that has the name of a launcher and belongs to the job itself, not to a Job."""
    name = names.launcher(job)
    found = (pod for pod in pods if pod.metadata.name == name and is_controlled_by(pod, job))
    return next(found, None)


def as_job(pod: Pod) -> LauncherJob:
    """The Job that a bare pod would be.

    A pod that is being deleted is not judged: the signal that ends it may look like a failure.
    """
    phase = "" if pod_state.is_terminating(pod) else pod.status.phase
    ended = pod_state.end_time(pod)
    verdict = JobCondition(
        type=_VERDICTS.get(phase, ""),
        status="True",
        reason=pod.status.reason,
        message=pod.status.message,
        last_transition_time=ended,
    )
    status = LauncherStatus(
        active=int(phase not in _VERDICTS),
        failed=int(phase == "Failed"),
        start_time=pod.metadata.creation_timestamp,
        completion_time=ended if phase == "Succeeded" else "",
        conditions=(verdict,) if verdict.type else (),
    )
    return LauncherJob(metadata=pod.metadata, status=status)


def check_limits(seen: Observed, now: datetime) -> Decision:
    """Fail a job whose bare launcher was restarted too often, or has run for too long."""
    pod, policy = seen.bare_launcher, seen.job.spec.run_policy
    if pod is None:
        return Decision()
    limit = policy.backoff_limit
    if limit is not None and pod_state.restarts(pod) >= max(limit, 1):
        message = f"Launcher {pod.metadata.name} reached its restart limit ({limit})"
        problem = Problem(ProblemReason.BACKOFF_LIMIT, message, is_fatal=True, ends_launcher=True)
        return Decision(problems=(problem,))
    began = seen.job.status.start_time or moment(pod.metadata.creation_timestamp) or now
    return active_deadline(seen.job, began, now)
