"""What to do about a Job and what to say about it: pure, from the Job, its pods and the time.

Counting is the delicate part, for a pod that has ended may be deleted at any time and the process
may die at any time, and still each pod has to be counted once. As on Kubernetes:

    the pod ends (it has a finalizer) ──► its uid is in the status, as not counted yet
                                            ──► the finalizer is removed ──► it is a number

Whoever looks at any of these steps knows the next one.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import chain

import msgspec
from msgspec.structs import replace

from mpi_operator.local.times import moment, timestamp

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
    Uncounted,
)

_TRUE, _FALSE = "True", "False"
_BACKOFF_EXCEEDED = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
_DEADLINE_EXCEEDED = ("DeadlineExceeded", "Job was active longer than specified deadline")
_COMPLETED = ("CompletionsReached", "Reached expected number of succeeded pods")


class Pace(msgspec.Struct, frozen=True):
    """How long a Job waits before its next try: doubling with each failure, up to a longest."""

    first: timedelta = timedelta(seconds=10)
    longest: timedelta = timedelta(minutes=10)

    def delay(self, failures: int) -> timedelta:
        # 2**30 times anything is past any longest, and still no overflow.
        return min(self.first * (1 << min(failures - 1, 30)), self.longest)


KUBERNETES_PACE = Pace()


class Decision(msgspec.Struct, frozen=True):
    """What to do, in this order: create, write the status, delete, release, expire."""

    status: JobStatus
    create: bool = False
    delete: tuple[JobPod, ...] = ()
    release: tuple[JobPod, ...] = ()  # from being tracked
    expire: bool = False
    look_again: timedelta | None = None


def decide(job: Job, pods: Sequence[JobPod], now: datetime, pace: Pace) -> Decision:
    """The next step of a Job; `pods` are those that it controls."""
    tracked = tuple(pod for pod in pods if pod.is_tracked)
    if job.metadata.deletion_timestamp:
        return Decision(job.status, release=tracked)
    if job.end is not None:
        return _after_the_end(job, job.end, tracked, now)
    if stopped := tuple(pod for pod in tracked if _was_stopped(job, pod)):
        # Before anything else: as soon as the status says that the Job goes on, they had failed.
        return Decision(job.status, release=stopped)
    seen = _seen(job, pods)
    end = _end(job, seen, now)
    if end is not None:
        return _ending(job, seen, end, now)
    return _suspended(job, seen, now) if job.spec.suspend else _going_on(job, seen, now, pace)


class _Seen(msgspec.Struct, frozen=True):
    """The pods of a Job, sorted."""

    pods: tuple[JobPod, ...]
    active: tuple[JobPod, ...]
    terminating: int
    succeeded: int  # ever
    failed: int  # ever


def _seen(job: Job, pods: Sequence[JobPod]) -> _Seen:
    active = (pod for pod in pods if pod.is_active)
    counted = _counting(job, pods, _has_failed(job))
    noted = counted.uncounted_terminated_pods
    return _Seen(
        pods=tuple(pods),
        active=tuple(sorted(active, key=_worth_keeping)),
        terminating=sum(pod.is_terminating for pod in pods),
        succeeded=counted.succeeded + len(noted.succeeded),
        failed=counted.failed + len(noted.failed),
    )


class _End(msgspec.Struct, frozen=True):
    """How a Job is about to end: what it says first, and what at last."""

    target: str
    last: str
    reason: str
    message: str


def _end(job: Job, seen: _Seen, now: datetime) -> _End | None:
    """How the Job ends, if it does. What was said before is not taken back."""
    if met := job.status.condition(SUCCESS_CRITERIA_MET):
        return _End(SUCCESS_CRITERIA_MET, COMPLETE, met.reason, met.message)
    if target := job.status.condition(FAILURE_TARGET):
        return _End(FAILURE_TARGET, FAILED, target.reason, target.message)
    if seen.failed > job.spec.backoff_limit or _is_past_restarts(job, seen):
        return _End(FAILURE_TARGET, FAILED, *_BACKOFF_EXCEEDED)
    wait = _until_deadline(job, now)
    if wait is not None and wait <= timedelta(0):
        return _End(FAILURE_TARGET, FAILED, *_DEADLINE_EXCEEDED)
    if seen.succeeded and not seen.active:
        return _End(SUCCESS_CRITERIA_MET, COMPLETE, *_COMPLETED)
    return None


def _is_past_restarts(job: Job, seen: _Seen) -> bool:
    """Whether containers were restarted in place too often. Zero allows none, and one none too."""
    if not job.restarts_in_place:
        return False
    restarts = sum(pod.restarts for pod in seen.pods if not (pod.has_failed or pod.has_succeeded))
    return restarts >= max(job.spec.backoff_limit, 1)


def _until_deadline(job: Job, now: datetime) -> timedelta | None:
    seconds = job.spec.active_deadline_seconds
    if seconds is None or not job.status.start_time or job.spec.suspend:
        return None
    return moment(job.status.start_time) + timedelta(seconds=seconds) - now


def _ending(job: Job, seen: _Seen, end: _End, now: datetime) -> Decision:
    """End what runs. The last word is said when nothing is left to end or to count."""
    is_failure = end.last == FAILED
    # Of a Job that fails, every pod that did not succeed has failed.
    counts_as_failed = (lambda _: True) if is_failure else _has_failed(job)
    status = _counting(job, seen.pods, counts_as_failed)
    status = _with(status, end.target, _TRUE, end.reason, end.message, now)
    terminating = seen.terminating + len(seen.active)
    status = replace(
        status,
        start_time=status.start_time or timestamp(now),
        active=0,
        ready=0,
        terminating=terminating,
    )
    is_settled = status.uncounted_terminated_pods == Uncounted()
    if is_settled and not terminating:
        status = _with(status, end.last, _TRUE, end.reason, end.message, now)
        completed = "" if is_failure else timestamp(now)
        status = replace(status, completion_time=completed)
    return Decision(status, delete=seen.active, release=_to_release(seen, status))


def _suspended(job: Job, seen: _Seen, now: datetime) -> Decision:
    """Nothing runs."""
    status = _counting(job, seen.pods, _has_failed(job))
    status = _with(status, SUSPENDED, _TRUE, "JobSuspended", "Job suspended", now)
    terminating = seen.terminating + len(seen.active)
    status = replace(status, start_time="", active=0, ready=0, terminating=terminating)
    return Decision(status, delete=seen.active, release=_to_release(seen, status))


def _going_on(job: Job, seen: _Seen, now: datetime, pace: Pace) -> Decision:
    """One pod, unless the work is done."""
    status = _resumed(_counting(job, seen.pods, _has_failed(job)), now)
    wanted = 0 if seen.succeeded else 1
    kept, surplus = seen.active[:wanted], seen.active[wanted:]
    in_the_way = seen.terminating if job.replaces_only_ended else 0
    is_missing = wanted > len(kept) + in_the_way
    wait = _until_next_try(job, seen, now, pace) if is_missing else None
    is_created = is_missing and wait is None
    status = replace(
        status,
        active=len(kept) + is_created,
        ready=sum(pod.is_ready for pod in kept),
        terminating=seen.terminating + len(surplus),
    )
    waits = (wait, _until_deadline(replace(job, status=status), now))
    return Decision(
        status,
        delete=surplus,
        create=is_created,
        release=_to_release(seen, status),
        look_again=min((each for each in waits if each is not None), default=None),
    )


def _resumed(status: JobStatus, now: datetime) -> JobStatus:
    """A Job that runs: the time for its deadline begins when it is let loose."""
    if status.condition(SUSPENDED):
        status = _with(status, SUSPENDED, _FALSE, "JobResumed", "Job resumed", now)
        return replace(status, start_time=timestamp(now))
    return replace(status, start_time=status.start_time or timestamp(now))


def _until_next_try(job: Job, seen: _Seen, now: datetime, pace: Pace) -> timedelta | None:
    """How long to wait before the next try, if at all: counted from the end of the last one."""
    ends = [_end_time(pod) for pod in filter(_has_failed(job), seen.pods)]
    if not (seen.failed and ends):
        return None
    wait = max(ends) + pace.delay(seen.failed) - now
    return wait if wait > timedelta(0) else None


def _after_the_end(
    job: Job, end: Condition, tracked: tuple[JobPod, ...], now: datetime
) -> Decision:
    ttl = job.spec.ttl_seconds_after_finished
    if ttl is None:
        return Decision(job.status, release=tracked)
    wait = moment(end.last_transition_time) + timedelta(seconds=ttl) - now
    is_over = wait <= timedelta(0)
    return Decision(
        job.status, release=tracked, expire=is_over, look_again=None if is_over else wait
    )


def _has_failed(job: Job) -> Callable[[JobPod], bool]:
    """What a failed pod is. To most Jobs one that is ending is lost already."""
    if job.replaces_only_ended:
        return lambda pod: pod.has_failed
    return lambda pod: pod.has_failed or pod.is_terminating


def _was_stopped(job: Job, pod: JobPod) -> bool:
    """Whether a pod was ended because its Job is suspended, or was until now: it has not failed."""
    is_stopped = job.spec.suspend or job.status.condition(SUSPENDED) is not None
    is_noted = pod.uid in job.status.uncounted_terminated_pods.failed
    return is_stopped and pod.is_deleted and not pod.has_succeeded and not is_noted


def _counting(
    job: Job, pods: Sequence[JobPod], counts_as_failed: Callable[[JobPod], bool]
) -> JobStatus:
    """The status with pods counted that were let go, and noted that are to be."""
    status, noted = job.status, job.status.uncounted_terminated_pods
    tracked = {pod.uid: pod for pod in pods if pod.is_tracked}
    known = {*noted.succeeded, *noted.failed}
    fresh = [pod for uid, pod in tracked.items() if uid not in known]
    succeeded = [pod.uid for pod in fresh if pod.has_succeeded]
    failed = [pod.uid for pod in fresh if not pod.has_succeeded and counts_as_failed(pod)]
    return replace(
        status,
        succeeded=status.succeeded + sum(uid not in tracked for uid in noted.succeeded),
        failed=status.failed + sum(uid not in tracked for uid in noted.failed),
        uncounted_terminated_pods=Uncounted(
            succeeded=tuple(chain(filter(tracked.get, noted.succeeded), succeeded)),
            failed=tuple(chain(filter(tracked.get, noted.failed), failed)),
        ),
    )


def _to_release(seen: _Seen, status: JobStatus) -> tuple[JobPod, ...]:
    """The pods whose end the status has noted. Those that we end come when they are deleted."""
    noted = status.uncounted_terminated_pods
    uids = {*noted.succeeded, *noted.failed}
    return tuple(pod for pod in seen.pods if pod.uid in uids and not pod.is_active)


def _with(
    status: JobStatus, kind: str, value: str, reason: str, message: str, now: datetime
) -> JobStatus:
    """The status with a condition; its time is that of its last change."""
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
    """When a pod ended, as well as is known."""
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


def _worth_keeping(pod: JobPod) -> tuple[bool, str, str]:
    """What to sort by so that the pod that is furthest comes first."""
    return (not pod.is_ready, pod.metadata.creation_timestamp, pod.metadata.name)
