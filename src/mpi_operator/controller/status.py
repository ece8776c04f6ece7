"""What the status of a job should say, from what is known. Pure.

The status is written when it differs from the stored one, so it has to come out the same as long as
nothing happens: the time enters only when something changes.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from msgspec.structs import replace

from mpi_operator.api import conditions, labels
from mpi_operator.api.conditions import Conditions, Reason, with_condition
from mpi_operator.api.profiles import profile
from mpi_operator.api.types import (
    Condition,
    ConditionStatus,
    ConditionType,
    MPIJob,
    MPIJobStatus,
    ReplicaStatus,
    ReplicaStatuses,
)

from . import pod_state
from .cached_types import moment
from .launcher_retry import with_retry
from .launcher_status import (
    failure,
    has_ended,
    has_succeeded,
    is_restarting,
    launcher_runs,
    success_time,
)
from .lost_workers import lost_workers
from .observed import Observed
from .problems import Problem, lost_worker, most_important, shortened

_TRUE, _FALSE = ConditionStatus.TRUE, ConditionStatus.FALSE
_CREATED, _RUNNING, _RESTARTING, _SUSPENDED = (
    ConditionType.CREATED,
    ConditionType.RUNNING,
    ConditionType.RESTARTING,
    ConditionType.SUSPENDED,
)
# Schedulers reword the same problem whenever a node comes or goes.
_REWORDED_AFTER = timedelta(seconds=30)


@dataclass(frozen=True)
class StatusDecision:
    """The status that a job should have, and when it may be another one though nothing happens."""

    status: MPIJobStatus
    requeue_after: timedelta | None = None


@dataclass(frozen=True)
class End:
    """How and when a job ended."""

    kind: ConditionType
    reason: str
    message: str
    time: datetime


def status_of(seen: Observed, problems: Sequence[Problem], now: datetime) -> MPIJobStatus:
    """The status that a job should have."""
    if seen.is_finished:
        return _kept(seen)
    seen = with_retry(seen, now)
    stored, is_judged = seen.job.status, _is_judged(seen, now)
    now = now.replace(microsecond=0)
    problem = most_important(problems)
    end = _launcher_end(seen, problems, now, is_judged) or _fatal_end(seen, problem, now)
    waits = end is None and has_ended(seen)  # to be judged: nothing is reported until then
    status = replace(
        stored,
        conditions=_conditions(seen, end, problem, now),
        replica_statuses=stored.replica_statuses if waits else _replica_statuses(seen, end),
        start_time=_start_time(seen, end, now),
        observed_generation=seen.job.metadata.generation or None,
        selector=labels.as_selector(labels.role_selector(seen.job, labels.Role.WORKER)),
    )
    return (
        replace(status, completion_time=_completion_time(status.conditions, end)) if end else status
    )


def decide_status(seen: Observed, problems: Sequence[Problem], now: datetime) -> StatusDecision:
    """The same, and when the stored message of a problem may be replaced by its current one."""
    status = status_of(seen, problems, now)
    if not problems:
        return StatusDecision(status)
    stored = dataclasses.replace(seen, job=replace(seen.job, status=status))
    later = status_of(stored, problems, now + _REWORDED_AFTER)
    return StatusDecision(status, _REWORDED_AFTER if later != status else None)


def _is_judged(seen: Observed, now: datetime) -> bool:
    """Whether it is known how well a launcher that ended with 0 has ended."""
    return not has_succeeded(seen) or lost_workers(seen, now).requeue_after is None


def _kept(seen: Observed) -> MPIJobStatus:
    """The status of a finished job: as it is, but for what readers still need."""
    stored = seen.job.status
    return replace(
        stored,
        # Some former writers left out when it ended.
        completion_time=stored.completion_time or _end_time(stored),
        # And some never set this; nothing is written for it alone.
        observed_generation=stored.observed_generation and seen.job.metadata.generation,
    )


def _launcher_end(
    seen: Observed, problems: Sequence[Problem], now: datetime, is_judged: bool
) -> End | None:
    """How the launcher ended, if it has, and if that has been judged."""
    if has_succeeded(seen):
        return _success(seen, problems, success_time(seen) or now) if is_judged else None
    launcher = seen.launcher
    if launcher is not None and (failed := launcher.condition("Failed")):
        reason, message = failure(seen, failed)
        time = moment(failed.last_transition_time)
        return End(ConditionType.FAILED, reason, message, time or now)
    return None


def _success(seen: Observed, problems: Sequence[Problem], time: datetime) -> End:
    """A launcher that ended with 0 has done its work, unless workers that it needed were lost."""
    lost = lost_worker(problems)
    if lost is not None and lost.is_fatal:
        return End(ConditionType.FAILED, lost.reason, shortened(lost.message), time)
    message = f"MPIJob {_name(seen.job)} successfully completed."
    if lost is not None:
        message = shortened(f"{message} {lost.message}")
    return End(ConditionType.SUCCEEDED, Reason.SUCCEEDED, message, time)


def _fatal_end(seen: Observed, problem: Problem | None, now: datetime) -> End | None:
    """The end of a job that cannot continue, if it has a fatal problem."""
    if problem is None or not problem.is_fatal or has_ended(seen):
        return None
    if not _is_over(seen, problem):
        return None
    return End(ConditionType.FAILED, problem.reason, problem.message, now)


def _is_over(seen: Observed, problem: Problem) -> bool:
    return problem.ends_launcher or not seen.launcher_is_under_way


def _conditions(
    seen: Observed, end: End | None, problem: Problem | None, now: datetime
) -> Conditions:
    known = seen.job.status.conditions
    if conditions.condition(known, _CREATED) is None:
        message = f"MPIJob {_name(seen.job)} is created."
        known = with_condition(known, _CREATED, _TRUE, Reason.CREATED, message, now=now)
    if _is_resumed(seen):
        known = with_condition(known, _SUSPENDED, _FALSE, Reason.RESUMED, "MPIJob resumed", now=now)
    if end is not None:
        return _ended(seen, known, end, now)
    if has_ended(seen):
        return known
    if seen.is_suspended and not seen.validation_errors:
        return _suspended(seen, known, problem, now)
    return _running(seen, known, problem, now)


def _is_resumed(seen: Observed) -> bool:
    """Whether a suspended job resumes. An invalid one does not."""
    was_suspended = conditions.is_true(seen.job.status.conditions, _SUSPENDED)
    return was_suspended and not seen.is_suspended and not seen.validation_errors


def _ended(seen: Observed, known: Conditions, end: End, now: datetime) -> Conditions:
    if conditions.condition(known, _RUNNING) is None:
        message = f"MPIJob {_name(seen.job)} is finished but Running condition was never set."
        if conditions.condition(known, _RESTARTING) is not None:  # it replaced Running
            message = _running_message(seen)
        never = Condition(
            type=_RUNNING,
            status=_FALSE,
            reason=Reason.RUNNING,
            message=message,
            last_update_time=end.time,
            last_transition_time=end.time,
        )
        known = (*known, never)
    return with_condition(known, end.kind, _TRUE, end.reason, end.message, now=now)


def _suspended(
    seen: Observed, known: Conditions, problem: Problem | None, now: datetime
) -> Conditions:
    known = with_condition(known, _SUSPENDED, _TRUE, Reason.SUSPENDED, "MPIJob suspended", now=now)
    if problem is not None:
        return _with_problem(known, _FALSE, problem, now)
    message = f"MPIJob {_name(seen.job)} is suspended."
    return with_condition(known, _RUNNING, _FALSE, Reason.SUSPENDED, message, now=now)


def _running(
    seen: Observed, known: Conditions, problem: Problem | None, now: datetime
) -> Conditions:
    """Whether the job runs, and why not. Once it runs, a launcher that runs is enough."""
    if profile(seen.job).reports_restarts and is_restarting(seen):
        message = f"MPIJob {_name(seen.job)} is restarting."
        reported = Problem(Reason.RESTARTING, message)
        return _with_state(known, _RESTARTING, reported, problem, now)
    if conditions.is_true(known, _RESTARTING) and not launcher_runs(seen):
        return known  # its last try has failed, which is the end in a moment
    has_launcher = any(pod_state.is_running(pod) for pod in seen.launcher_pods)
    was_running = any(conditions.is_true(known, kind) for kind in (_RUNNING, _RESTARTING))
    is_running = has_launcher and seen.are_workers_running
    if is_running or (was_running and (has_launcher or problem is None)):
        reported = Problem(Reason.RUNNING, _running_message(seen))
        return _with_state(known, _RUNNING, reported, problem, now)
    if problem is not None:
        return _with_problem(known, _FALSE, problem, now)
    if _has_problem(known):
        message = f"MPIJob {_name(seen.job)} is starting."
        return with_condition(known, _RUNNING, _FALSE, Reason.STARTING, message, now=now)
    return known


def _with_state(
    known: Conditions, kind: ConditionType, state: Problem, problem: Problem | None, now: datetime
) -> Conditions:
    """It runs or is restarted; the message has the problem, if there is one."""
    if problem is None:
        return with_condition(known, kind, _TRUE, state.reason, state.message, now=now)
    stored = conditions.condition(known, kind)
    reported = Problem(state.reason, shortened(f"{state.message} {problem.message}"))
    # This only decides whether 30s are waited: a message that was reworded costs one delay.
    is_first = stored is None or not stored.is_true or stored.message == state.message
    return _with_problem(known, _TRUE, reported, now, kind=kind, at_once=is_first)


def _with_problem(
    known: Conditions,
    status: ConditionStatus,
    problem: Problem,
    now: datetime,
    *,
    kind: ConditionType = _RUNNING,
    at_once: bool = False,
) -> Conditions:
    """Report a problem. A new message for the same reason waits for 30s."""
    stored = conditions.condition(known, kind)
    updated = stored.last_update_time if stored else None
    is_reported = stored is not None and (stored.status, stored.reason) == (status, problem.reason)
    if is_reported and not at_once and updated and now - updated < _REWORDED_AFTER:
        return known
    return with_condition(known, kind, status, problem.reason, problem.message, now=now)


def _running_message(seen: Observed) -> str:
    return f"MPIJob {_name(seen.job)} is running."


def _has_problem(known: Conditions) -> bool:
    stored = conditions.condition(known, _RUNNING)
    fine = (Reason.RUNNING, Reason.SUSPENDED, Reason.STARTING)
    return stored is not None and stored.reason not in fine


def _replica_statuses(seen: Observed, end: End | None) -> ReplicaStatuses:
    return ReplicaStatuses(launcher=_launcher_status(seen, end), worker=_worker_status(seen, end))


def _launcher_status(seen: Observed, end: End | None) -> ReplicaStatus | None:
    former = seen.retries.failed
    if seen.launcher is None:
        return ReplicaStatus(failed=former) if seen.retries.used else None
    running = sum(pod_state.is_running(pod) for pod in seen.launcher_pods)
    succeeded = end is not None and end.kind is ConditionType.SUCCEEDED
    return ReplicaStatus(
        active=0 if end else running,
        succeeded=int(succeeded),
        failed=former + max(seen.launcher.status.failed, 0),
    )


def _worker_status(seen: Observed, end: End | None) -> ReplicaStatus | None:
    if seen.job.spec.worker is None:
        return None
    if end is not None or seen.is_suspended:
        return ReplicaStatus()
    phases = [pod.status.phase for pod in seen.workers.values()]
    return ReplicaStatus(
        active=len(seen.running_hosts),
        succeeded=phases.count("Succeeded"),
        failed=phases.count("Failed"),
    )


def _start_time(seen: Observed, end: End | None, now: datetime) -> datetime | None:
    """When the job started, or was resumed: not after its end, if no reconcile came in between."""
    stored = seen.job.status.start_time
    if seen.is_suspended or seen.validation_errors:
        return stored
    if stored is None or _is_resumed(seen):
        return min(now, end.time) if end else now
    return stored


def _completion_time(known: Conditions, end: End) -> datetime:
    """When the job ended: not before it last ran, because tools compute durations."""
    running = conditions.condition(known, _RUNNING)
    times = (running.last_update_time, running.last_transition_time) if running else ()
    return max([end.time, *(time for time in times if time is not None)])


def _end_time(stored: MPIJobStatus) -> datetime | None:
    last = conditions.describing(stored.conditions)
    return last.last_transition_time if last else None


def _name(job: MPIJob) -> str:
    return f"{job.metadata.namespace}/{job.metadata.name}"
