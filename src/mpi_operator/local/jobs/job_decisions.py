"""The next step of a Job and its new status: pure, from the Job, its pods and the time.

Each pod has to be counted exactly once, although it may be deleted and this process may be killed
at any time. The steps are those of Kubernetes:

    the pod terminates (it has a finalizer) ──► status.uncountedTerminatedPods has its UID
                                              ──► the finalizer is removed ──► it is counted

From each of these states the next step follows, so a restarted controller simply continues.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import chain

import msgspec
from msgspec.structs import replace

from mpi_operator.local.times import moment, timestamp

from . import pod_failure_policy
from .job_objects import (
    COMPLETE,
    FAILED,
    FAILURE_TARGET,
    SUCCESS_CRITERIA_MET,
    SUSPENDED,
    Condition,
    Job,
    JobPod,
    JobStatus,
    UncountedTerminatedPods,
)
from .pod_failure_policy import judge

_TRUE, _FALSE = "True", "False"
_BACKOFF_EXCEEDED = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
_DEADLINE_EXCEEDED = ("DeadlineExceeded", "Job was active longer than specified deadline")
_COMPLETED = ("CompletionsReached", "Reached expected number of succeeded pods")


class PodFailureBackoff(msgspec.Struct, frozen=True):
    """The delay before a failed pod is replaced: it doubles with each failure, up to a maximum."""

    initial: timedelta = timedelta(seconds=10)
    maximum: timedelta = timedelta(minutes=10)

    def delay(self, failures: int) -> timedelta:
        # The exponent is capped to avoid an overflow; 2**30 is past any maximum.
        return min(self.initial * (1 << min(failures - 1, 30)), self.maximum)


DEFAULT_BACKOFF = PodFailureBackoff()


class Decision(msgspec.Struct, frozen=True):
    """What to do, in this order: create, write the status, delete, untrack, expire."""

    status: JobStatus
    create: bool = False
    delete: tuple[JobPod, ...] = ()
    untrack: tuple[JobPod, ...] = ()  # remove the tracking finalizer
    expire: bool = False  # delete the Job, its TTL has passed
    requeue_after: timedelta | None = None


def decide(job: Job, pods: Sequence[JobPod], now: datetime, backoff: PodFailureBackoff) -> Decision:
    """Return the next step of a Job; `pods` are those that it controls."""
    tracked = tuple(pod for pod in pods if pod.is_tracked)
    if job.metadata.deletion_timestamp:
        return Decision(job.status, untrack=tracked)
    if job.finished is not None:
        return _finished(job, job.finished, tracked, now)
    if suspended := tuple(pod for pod in tracked if _was_suspended(job, pod)):
        # Must come first: once the status says that the Job is resumed, these count as failed.
        return Decision(job.status, untrack=suspended)
    seen = _seen(job, pods)
    outcome = _outcome(job, seen, now)
    if outcome is not None:
        return _finishing(job, seen, outcome, now)
    return _suspended(job, seen, now) if job.spec.suspend else _active(job, seen, now, backoff)


class _Seen(msgspec.Struct, frozen=True):
    """The pods of a Job by state, with the totals including those not yet counted."""

    pods: tuple[JobPod, ...]
    active: tuple[JobPod, ...]
    terminating: int
    succeeded: int
    failed: int
    fatal: str


def _seen(job: Job, pods: Sequence[JobPod]) -> _Seen:
    active = (pod for pod in pods if pod.is_active)
    counted = _counted(job, pods, _has_failed(job))
    uncounted = counted.uncounted_terminated_pods
    return _Seen(
        pods=tuple(pods),
        active=tuple(sorted(active, key=_preference)),
        terminating=sum(pod.is_terminating for pod in pods),
        succeeded=counted.succeeded + len(uncounted.succeeded),
        failed=counted.failed + len(uncounted.failed),
        fatal=_fatal(job, pods),
    )


def _fatal(job: Job, pods: Sequence[JobPod]) -> str:
    """Why a failed pod fails the Job by its policy; empty if none does."""
    messages = (judge(job, pod).fails_job for pod in filter(_has_failed(job), pods))
    return next(filter(None, messages), "")


class _Outcome(msgspec.Struct, frozen=True):
    """How a Job finishes: the condition set at once, and the one set when its pods are gone."""

    interim: str
    terminal: str
    reason: str
    message: str


def _outcome(job: Job, seen: _Seen, now: datetime) -> _Outcome | None:
    """Return how the Job finishes, if it does. An interim condition is never taken back."""
    if met := job.status.condition(SUCCESS_CRITERIA_MET):
        return _Outcome(SUCCESS_CRITERIA_MET, COMPLETE, met.reason, met.message)
    if target := job.status.condition(FAILURE_TARGET):
        return _Outcome(FAILURE_TARGET, FAILED, target.reason, target.message)
    if seen.fatal:
        return _Outcome(FAILURE_TARGET, FAILED, pod_failure_policy.REASON, seen.fatal)
    if seen.failed > job.spec.backoff_limit or _is_past_restart_limit(job, seen):
        return _Outcome(FAILURE_TARGET, FAILED, *_BACKOFF_EXCEEDED)
    wait = _time_to_deadline(job, now)
    if wait is not None and wait <= timedelta(0):
        return _Outcome(FAILURE_TARGET, FAILED, *_DEADLINE_EXCEEDED)
    if seen.succeeded and not seen.active:
        return _Outcome(SUCCESS_CRITERIA_MET, COMPLETE, *_COMPLETED)
    return None


def _is_past_restart_limit(job: Job, seen: _Seen) -> bool:
    """Whether containers restarted too often. As on Kubernetes, limits of 0 and 1 are the same."""
    if not job.restarts_containers:
        return False
    restarts = sum(pod.restarts for pod in seen.pods if not (pod.has_failed or pod.has_succeeded))
    return restarts >= max(job.spec.backoff_limit, 1)


def _time_to_deadline(job: Job, now: datetime) -> timedelta | None:
    seconds = job.spec.active_deadline_seconds
    if seconds is None or not job.status.start_time or job.spec.suspend:
        return None
    return moment(job.status.start_time) + timedelta(seconds=seconds) - now


def _finishing(job: Job, seen: _Seen, outcome: _Outcome, now: datetime) -> Decision:
    """Delete active pods. The terminal condition waits until every pod is gone and counted."""
    is_failure = outcome.terminal == FAILED
    # Of a Job that fails, every pod that did not succeed counts as failed.
    counts_as_failed = (lambda _: True) if is_failure else _has_failed(job)
    status = _counted(job, seen.pods, counts_as_failed)
    status = _with_condition(status, outcome.interim, outcome.reason, outcome.message, now)
    terminating = seen.terminating + len(seen.active)
    status = replace(
        status,
        start_time=status.start_time or timestamp(now),
        active=0,
        ready=0,
        terminating=terminating,
    )
    all_counted = status.uncounted_terminated_pods == UncountedTerminatedPods()
    if all_counted and not terminating:
        status = _with_condition(status, outcome.terminal, outcome.reason, outcome.message, now)
        status = replace(status, completion_time="" if is_failure else timestamp(now))
    return Decision(status, delete=seen.active, untrack=_to_untrack(job, seen, status))


def _suspended(job: Job, seen: _Seen, now: datetime) -> Decision:
    """Delete active pods; a suspended Job has none."""
    status = _counted(job, seen.pods, _has_failed(job))
    status = _with_condition(status, SUSPENDED, "JobSuspended", "Job suspended", now)
    terminating = seen.terminating + len(seen.active)
    status = replace(status, start_time="", active=0, ready=0, terminating=terminating)
    return Decision(status, delete=seen.active, untrack=_to_untrack(job, seen, status))


def _active(job: Job, seen: _Seen, now: datetime, backoff: PodFailureBackoff) -> Decision:
    """Keep one pod active, unless one has succeeded."""
    status = _resumed(_counted(job, seen.pods, _has_failed(job)), now)
    wanted = 0 if seen.succeeded else 1
    kept, surplus = seen.active[:wanted], seen.active[wanted:]
    blocking = seen.terminating if job.replaces_only_failed_pods else 0
    is_missing = wanted > len(kept) + blocking
    wait = _backoff_remaining(job, seen, now, backoff) if is_missing else None
    is_created = is_missing and wait is None
    status = replace(
        status,
        active=len(kept) + is_created,
        ready=sum(pod.is_ready for pod in kept),
        terminating=seen.terminating + len(surplus),
    )
    waits = (wait, _time_to_deadline(replace(job, status=status), now))
    return Decision(
        status,
        delete=surplus,
        create=is_created,
        untrack=_to_untrack(job, seen, status),
        requeue_after=min((each for each in waits if each is not None), default=None),
    )


def _resumed(status: JobStatus, now: datetime) -> JobStatus:
    """The status of a Job that is not suspended. Its deadline counts from when it was resumed."""
    if status.condition(SUSPENDED):
        status = _with_condition(status, SUSPENDED, "JobResumed", "Job resumed", now, value=_FALSE)
        return replace(status, start_time=timestamp(now))
    return replace(status, start_time=status.start_time or timestamp(now))


def _backoff_remaining(
    job: Job, seen: _Seen, now: datetime, backoff: PodFailureBackoff
) -> timedelta | None:
    """How long to wait before the next pod, counted from the end of the last one that failed."""
    ends = [_end_time(pod) for pod in filter(_has_failed(job), seen.pods)]
    if not (seen.failed and ends):
        return None
    wait = max(ends) + backoff.delay(seen.failed) - now
    return wait if wait > timedelta(0) else None


def _finished(
    job: Job, finished: Condition, tracked: tuple[JobPod, ...], now: datetime
) -> Decision:
    ttl = job.spec.ttl_seconds_after_finished
    if ttl is None:
        return Decision(job.status, untrack=tracked)
    wait = moment(finished.last_transition_time) + timedelta(seconds=ttl) - now
    is_over = wait <= timedelta(0)
    return Decision(
        job.status, untrack=tracked, expire=is_over, requeue_after=None if is_over else wait
    )


def _has_failed(job: Job) -> Callable[[JobPod], bool]:
    """Whether a pod counts as failed. By default a terminating pod does, as on Kubernetes."""
    if job.replaces_only_failed_pods:
        return lambda pod: pod.has_failed
    return lambda pod: pod.has_failed or pod.is_terminating


def _was_suspended(job: Job, pod: JobPod) -> bool:
    """Whether a pod was deleted because its Job is or was suspended, which is no failure."""
    is_suspended = job.spec.suspend or job.status.condition(SUSPENDED) is not None
    is_recorded = pod.uid in job.status.uncounted_terminated_pods.failed
    return is_suspended and pod.is_deleted and not (pod.has_succeeded or is_recorded)


def _counted(
    job: Job, pods: Sequence[JobPod], counts_as_failed: Callable[[JobPod], bool]
) -> JobStatus:
    """The status with untracked pods counted and newly terminated ones recorded as uncounted."""
    status, uncounted = job.status, job.status.uncounted_terminated_pods
    tracked = {pod.uid: pod for pod in pods if pod.is_tracked}
    recorded = {*uncounted.succeeded, *uncounted.failed}
    fresh = [pod for uid, pod in tracked.items() if uid not in recorded]
    succeeded = [pod.uid for pod in fresh if pod.has_succeeded]
    failed = [
        pod.uid
        for pod in fresh
        if not pod.has_succeeded and counts_as_failed(pod) and judge(job, pod).is_counted
    ]
    return replace(
        status,
        succeeded=status.succeeded + sum(uid not in tracked for uid in uncounted.succeeded),
        failed=status.failed + sum(uid not in tracked for uid in uncounted.failed),
        uncounted_terminated_pods=UncountedTerminatedPods(
            succeeded=tuple(chain(filter(tracked.get, uncounted.succeeded), succeeded)),
            failed=tuple(chain(filter(tracked.get, uncounted.failed), failed)),
        ),
    )


def _to_untrack(job: Job, seen: _Seen, status: JobStatus) -> tuple[JobPod, ...]:
    """Pods that the status has recorded. Those still active follow once they are deleted."""
    uncounted = status.uncounted_terminated_pods
    uids = {*uncounted.succeeded, *uncounted.failed}
    return tuple(
        pod for pod in seen.pods if (pod.uid in uids and not pod.is_active) or _is_ignored(job, pod)
    )


def _is_ignored(job: Job, pod: JobPod) -> bool:
    """Whether a failed pod is never counted."""
    return pod.is_tracked and pod.has_failed and not judge(job, pod).is_counted


def _with_condition(
    status: JobStatus, kind: str, reason: str, message: str, now: datetime, *, value: str = _TRUE
) -> JobStatus:
    """The status with this condition; its times change only when its content does."""
    time = timestamp(now)
    new = Condition(
        type=kind,
        status=value,
        reason=reason,
        message=message,
        last_probe_time=time,
        last_transition_time=time,
    )
    known = next((each for each in status.conditions if each.type == kind), None)
    if known is None:
        return replace(status, conditions=(*status.conditions, new))
    if (known.status, known.reason, known.message) == (value, reason, message):
        return status
    return replace(
        status, conditions=tuple(new if each is known else each for each in status.conditions)
    )


def _end_time(pod: JobPod) -> datetime:
    """When a pod terminated, as exactly as its status tells."""
    ends = [container.state.terminated for container in pod.status.container_statuses]
    times = [ended.finished_at for ended in ends if ended is not None and ended.finished_at]
    if times and len(times) == len(ends):
        return max(map(moment, times))
    for condition in pod.conditions:
        is_unready = (condition.type, condition.status) == ("Ready", _FALSE)
        if is_unready and condition.last_transition_time:
            return moment(condition.last_transition_time)
    if pod.is_deleted:
        grace = timedelta(seconds=pod.metadata.deletion_grace_period_seconds or 0)
        return moment(pod.metadata.deletion_timestamp) - grace
    return moment(pod.metadata.creation_timestamp)


def _preference(pod: JobPod) -> tuple[bool, str, str]:
    """Sort key: ready pods first, then the oldest."""
    return (not pod.is_ready, pod.metadata.creation_timestamp, pod.metadata.name)
