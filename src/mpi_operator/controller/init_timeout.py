"""When a start has taken too long, where the annotation `init-timeout` of a job limits it.

Without it a job waits as long as it takes: queues, gangs and autoscalers take their time.
`pod_diagnostics` reports what keeps the pods from running; this only decides that it took too long.
Once a job has run, or its launcher has failed, its start is over.
"""

from datetime import datetime, timedelta
from functools import partial

from mpi_operator.api import annotations, conditions, names
from mpi_operator.api.types import ConditionType

from . import pod_state
from .decision import Decision
from .launcher_log import unreachable_worker
from .observed import Observed
from .problems import Problem, ProblemReason

_RUNS = (ConditionType.RUNNING, ConditionType.RESTARTING)


def init_timeout(seen: Observed, now: datetime) -> Decision:
    """Fail a job whose start takes too long, or whose launcher gave up on a worker."""
    limit = annotations.init_timeout(seen.job.metadata.annotations)
    if limit is None:
        return Decision()
    if sentence := _unreachable_worker(seen):
        return Decision(problems=(_problem(limit, sentence),))
    if not _is_starting(seen):
        return Decision()
    wait = _began(seen, now) + limit - now
    if wait > timedelta(0):
        return Decision(requeue_after=wait)
    return Decision(problems=(_problem(limit, _missing(seen)),))


def _began(seen: Observed, now: datetime) -> datetime:
    """When the job started, or was resumed: now, if that is not stored yet."""
    status = seen.job.status
    is_resumed = conditions.is_true(status.conditions, ConditionType.SUSPENDED)
    return now if status.start_time is None or is_resumed else status.start_time


def _is_starting(seen: Observed) -> bool:
    known = seen.job.status.conditions
    has_run = any(map(partial(conditions.is_true, known), _RUNS))
    has_failed = seen.launcher is not None and seen.launcher.status.failed > 0
    has_ended = any(pod_state.has_ended(pod) for pod in seen.launcher_pods)
    is_retried = seen.retries.used > 0
    return not (has_run or has_failed or has_ended or is_retried or _runs(seen))


def _runs(seen: Observed) -> bool:
    """Whether it runs already, although its status does not say so yet."""
    return seen.are_workers_running and any(map(pod_state.is_running, seen.launcher_pods))


def _unreachable_worker(seen: Observed) -> str:
    """The worker that the first try of the launcher gave up on. Later tries are no start."""
    first = min(seen.launcher_pods, key=pod_state.by_age, default=None)
    failed = seen.launcher.status.failed if seen.launcher else 0
    if first is None or failed > 1 or seen.retries.used or pod_state.ends(first) > 1:
        return ""
    return unreachable_worker(seen, pod_state.last_words(first))


def _missing(seen: Observed) -> str:
    """The workers that are missing."""
    is_there = pod_state.is_ready if seen.job.spec.launcher_waits else pod_state.is_running
    absent = [
        names.worker(seen.job, index)
        for index in sorted(seen.worker_indexes)
        if (pod := seen.workers.get(index)) is None or not is_there(pod)
    ]
    if not absent:
        return "the launcher is not running"
    first, *others = absent
    state = "ready" if seen.job.spec.launcher_waits else "running"
    total = seen.job.spec.worker_count
    if total == 1:
        return f"worker {first} is not {state}"
    if not others:
        return f"1 of {total} workers is not {state}: {first}"
    return f"{len(absent)} of {total} workers are not {state}, for example {first}"


def _problem(limit: timedelta, why: str) -> Problem:
    seconds = int(limit.total_seconds())
    message = f"Job did not start within {seconds}s ({annotations.INIT_TIMEOUT}): {why}"
    return Problem(ProblemReason.INIT_TIMEOUT, message, is_fatal=True, ends_launcher=True)
