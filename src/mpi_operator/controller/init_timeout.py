"""When a start has taken too long: only where the annotation `init-timeout` of a job says so.

Without it a job waits for as long as it takes: queues, gangs and autoscalers take their time. What
keeps the pods from running is told by others (`pod_problems`); here it is only decided that it is
enough. Once a job has run, or its launcher has failed, its start is over.
"""

from datetime import datetime, timedelta

from mpi_operator.api import annotations, conditions, names
from mpi_operator.api.types import ConditionType

from . import pod_state
from .launcher_log import given_up
from .observed import Observed
from .problems import Problem, ProblemReason

_NOW = timedelta(0)


def init_timeout(seen: Observed, now: datetime) -> Problem | None:
    """Why the start of a job has failed, if it has."""
    limit = _limit(seen)
    if limit is None:
        return None
    if sentence := _given_up(seen):
        return _problem(limit, sentence)
    left = time_to_init_timeout(seen, now)
    return _problem(limit, _missing(seen)) if left is not None and left <= _NOW else None


def time_to_init_timeout(seen: Observed, now: datetime) -> timedelta | None:
    """How long the start may still take; None where nobody counts."""
    limit = _limit(seen)
    if limit is None or not _is_starting(seen):
        return None
    return _began(seen, now) + limit - now


def _limit(seen: Observed) -> timedelta | None:
    return annotations.init_timeout(seen.job.metadata.annotations)


def _began(seen: Observed, now: datetime) -> datetime:
    """When the job started, or was resumed: now, if that is not on record yet."""
    status = seen.job.status
    is_resumed = conditions.is_true(status.conditions, ConditionType.SUSPENDED)
    return now if status.start_time is None or is_resumed else status.start_time


def _is_starting(seen: Observed) -> bool:
    has_run = conditions.is_true(seen.job.status.conditions, ConditionType.RUNNING)
    has_failed = seen.launcher is not None and seen.launcher.status.failed > 0
    has_ended = any(pod_state.has_ended(pod) for pod in seen.launcher_pods)
    return not (has_run or has_failed or has_ended or _runs(seen))


def _runs(seen: Observed) -> bool:
    """Whether it has come to run by now, and only its status does not say so yet."""
    return seen.are_workers_running and any(map(pod_state.is_running, seen.launcher_pods))


def _given_up(seen: Observed) -> str:
    """What the first try of the launcher says. Further ones begin after the start."""
    first = min(seen.launcher_pods, key=pod_state.by_age, default=None)
    failed = seen.launcher.status.failed if seen.launcher else 0
    if first is None or failed > 1 or pod_state.ends(first) > 1:
        return ""
    return given_up(seen, pod_state.last_words(first))


def _missing(seen: Observed) -> str:
    """Who is not there."""
    is_there = pod_state.is_ready if seen.job.spec.launcher_waits else pod_state.is_running
    absent = [
        names.worker(seen.job, index)
        for index in range(seen.job.spec.worker_count)
        if (pod := seen.workers.get(index)) is None or not is_there(pod)
    ]
    if not absent:
        return "the launcher does not run"
    first, *others = absent
    more = f" and {len(others)} more" if others else ""
    state = "ready" if seen.job.spec.launcher_waits else "running"
    return f"{first}{more} of {seen.job.spec.worker_count} workers not {state}"


def _problem(limit: timedelta, why: str) -> Problem:
    seconds = int(limit.total_seconds())
    message = f"The job did not start within {seconds} s ({annotations.INIT_TIMEOUT}): {why}"
    return Problem(ProblemReason.INIT_TIMEOUT, message, is_fatal=True)
