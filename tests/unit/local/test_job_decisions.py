"""The decisions about a Job, as tables: the Job, its pods and the time, and what follows."""

from dataclasses import dataclass
from datetime import timedelta

import pytest

from mpi_operator.local.jobs.job_decisions import PodFailureBackoff, decide
from tests.unit.local.jobs import a_job, a_pod, at, stamp

BACKOFF = PodFailureBackoff(initial=timedelta(seconds=10), maximum=timedelta(seconds=60))


def condition(kind, reason="", message="", *, status="True", time=0.0):
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastProbeTime": stamp(time),
        "lastTransitionTime": stamp(time),
    }


def conditions_of(decision):
    return [(each.type, each.status, each.reason) for each in decision.status.conditions]


def uids(pods):
    return [pod.uid for pod in pods]


@dataclass(frozen=True)
class Expected:
    """The decision, as far as it matters here."""

    create: bool = False
    delete: tuple[str, ...] = ()
    untrack: tuple[str, ...] = ()
    active: int = 0
    wait: float | None = None


def outcome(decision):
    wait = decision.requeue_after
    return Expected(
        create=decision.create,
        delete=tuple(uids(decision.delete)),
        untrack=tuple(uids(decision.untrack)),
        active=decision.status.active,
        wait=None if wait is None else wait.total_seconds(),
    )


@pytest.mark.parametrize(
    ("job", "pods", "expected"),
    [
        pytest.param(a_job({}), [], Expected(create=True, active=1), id="a new Job gets its pod"),
        pytest.param(a_job(), [a_pod()], Expected(active=1), id="a running pod is enough"),
        pytest.param(
            a_job(),
            [a_pod("Failed", ended=3)],
            Expected(untrack=("p1",), wait=8),
            id="the backoff starts when the pod failed",
        ),
        pytest.param(
            a_job({"startTime": stamp(0), "failed": 2}),
            [a_pod("Failed", uid="p3", ended=-30)],
            Expected(untrack=("p3",), wait=5),
            id="the third backoff is four times as long",
        ),
        pytest.param(
            a_job({"startTime": stamp(0), "failed": 5}),
            [a_pod("Failed", uid="p6", tracked=False, ended=-50)],
            Expected(wait=5),
            id="there is a maximum backoff",
        ),
        pytest.param(
            a_job({"startTime": stamp(0), "failed": 1}),
            [a_pod("Failed", tracked=False, ended=-6)],
            Expected(create=True, active=1),
            id="after the backoff there is another pod",
        ),
        pytest.param(
            a_job({"startTime": stamp(0), "failed": 3}),
            [],
            Expected(create=True, active=1),
            id="no backoff if the failed pods are gone",
        ),
        pytest.param(
            a_job(),
            [a_pod(deleted=True)],
            Expected(),
            id="a terminating pod is not replaced",
        ),
        pytest.param(
            a_job(podReplacementPolicy="TerminatingOrFailed"),
            [a_pod(deleted=True)],
            Expected(untrack=("p1",), wait=5),
            id="unless the Job counts it as failed",
        ),
        pytest.param(
            a_job(),
            [a_pod(deleted=True, grace=0)],
            Expected(untrack=("p1",), wait=5),
            id="a force-deleted pod has failed",
        ),
        pytest.param(
            a_job(),
            [a_pod(uid="p1"), a_pod(uid="p2", ready=True)],
            Expected(delete=("p1",), active=1),
            id="of two pods the ready one stays",
        ),
        pytest.param(
            a_job(suspend=True),
            [a_pod()],
            Expected(delete=("p1",)),
            id="a suspended Job has no pod",
        ),
        pytest.param(
            a_job(suspend=True),
            [a_pod(deleted=True)],
            Expected(untrack=("p1",)),
            id="a pod deleted by suspension is not counted",
        ),
        pytest.param(
            a_job(suspend=True),
            [a_pod("Failed", ended=1)],
            Expected(untrack=("p1",)),
            id="a pod that failed before is counted",
        ),
        pytest.param(
            a_job({"conditions": [condition("Suspended", "JobSuspended", "Job suspended")]}),
            [a_pod(deleted=True)],
            Expected(untrack=("p1",)),
            id="nor is it counted if the Job is resumed meanwhile",
        ),
        pytest.param(
            a_job(activeDeadlineSeconds=100),
            [a_pod()],
            Expected(active=1, wait=95),
            id="a deadline",
        ),
        pytest.param(
            a_job(activeDeadlineSeconds=5),
            [a_pod()],
            Expected(delete=("p1",)),
            id="past the deadline the pod is deleted",
        ),
        pytest.param(
            a_job(activeDeadlineSeconds=5, suspend=True),
            [],
            Expected(),
            id="a suspended Job has no deadline",
        ),
        pytest.param(
            a_job(backoffLimit=3, restart_policy="OnFailure"),
            [a_pod(restarts=2)],
            Expected(active=1),
            id="container restarts up to the limit",
        ),
        pytest.param(
            a_job(backoffLimit=3, restart_policy="OnFailure"),
            [a_pod(restarts=3)],
            Expected(delete=("p1",)),
            id="container restarts at the limit",
        ),
        pytest.param(
            a_job(backoffLimit=0),
            [a_pod(restarts=9)],
            Expected(active=1),
            id="restarts only count with OnFailure",
        ),
        pytest.param(
            a_job({"startTime": stamp(0), "conditions": [condition("Complete")]}),
            [a_pod(), a_pod("Succeeded", uid="p2")],
            Expected(untrack=("p1", "p2")),
            id="a finished Job untracks all pods",
        ),
    ],
)
def test_the_next_step(job, pods, expected):
    assert outcome(decide(job, pods, at(5), BACKOFF)) == expected


# --- counting


def test_a_terminated_pod_is_recorded_then_untracked_then_counted():
    job, pod = a_job(), a_pod("Failed", ended=5)
    recorded = decide(job, [pod], at(5), BACKOFF)
    assert recorded.status.uncounted_terminated_pods.failed == ("p1",)
    assert (recorded.status.failed, uids(recorded.untrack)) == (0, ["p1"])
    released = a_pod("Failed", ended=5, tracked=False)
    counted = decide(with_status(job, recorded), [released], at(5), BACKOFF)
    assert (counted.status.failed, counted.status.uncounted_terminated_pods.failed) == (1, ())
    assert decide(with_status(job, counted), [released], at(5), BACKOFF).status == counted.status


def test_a_recorded_pod_counts_when_it_is_gone():
    job = a_job({"startTime": stamp(0), "uncountedTerminatedPods": {"failed": ["p1"]}})
    assert decide(job, [], at(5), BACKOFF).status.failed == 1


def test_a_recorded_pod_is_not_counted_twice():
    job = a_job({"startTime": stamp(0), "uncountedTerminatedPods": {"failed": ["p1"]}})
    decision = decide(job, [a_pod("Failed", ended=5)], at(5), BACKOFF)
    assert decision.status.uncounted_terminated_pods.failed == ("p1",)
    assert decision.requeue_after == timedelta(seconds=10), "as after one failure"


def with_status(job, decision):
    return type(job)(metadata=job.metadata, spec=job.spec, status=decision.status)


def ending(job, pods, now=5.0):
    """The decisions until nothing changes any more; deleted pods disappear at once."""
    decisions = []
    for _ in range(10):
        decision = decide(job, pods, at(now), BACKOFF)
        decisions.append(decision)
        gone = set(uids(decision.delete))
        released = {*uids(decision.untrack)}
        before, job = job, with_status(job, decision)
        after = [a_pod(pod.status.phase, uid=pod.uid, tracked=False) for pod in pods]
        pods = [
            new if old.uid in released else old
            for old, new in zip(pods, after, strict=True)
            if old.uid not in gone
        ]
        if job == before and not (gone or released):
            return decisions
    raise AssertionError("it never settles")


# --- completion and failure


def test_a_pod_that_succeeds_completes_the_job():
    *_, last = ending(a_job(), [a_pod("Succeeded", ended=5)])
    assert (last.status.succeeded, last.status.active) == (1, 0)
    assert last.status.completion_time == stamp(5)
    assert conditions_of(last) == [
        ("SuccessCriteriaMet", "True", "CompletionsReached"),
        ("Complete", "True", "CompletionsReached"),
    ]


def test_the_interim_condition_comes_first():
    first, *_ = ending(a_job(), [a_pod("Succeeded", ended=5)])
    assert conditions_of(first) == [("SuccessCriteriaMet", "True", "CompletionsReached")]


def test_too_many_failures_fail_the_job():
    *_, last = ending(a_job(backoffLimit=0), [a_pod("Failed", ended=5)])
    assert (last.status.failed, last.status.completion_time) == (1, "")
    assert conditions_of(last) == [
        ("FailureTarget", "True", "BackoffLimitExceeded"),
        ("Failed", "True", "BackoffLimitExceeded"),
    ]
    assert last.status.conditions[-1].message == "Job has reached the specified backoff limit"


def test_a_deadline_fails_the_job_and_its_active_pod():
    *_, last = ending(a_job(activeDeadlineSeconds=5), [a_pod()])
    assert last.status.failed == 1
    assert conditions_of(last)[-1] == ("Failed", "True", "DeadlineExceeded")
    assert last.status.conditions[-1].message == "Job was active longer than specified deadline"


def test_the_terminal_condition_waits_for_terminating_pods():
    target = condition("FailureTarget", "DeadlineExceeded", "too long")
    job = a_job({"startTime": stamp(0), "conditions": [target]})
    waiting = decide(job, [a_pod(deleted=True, tracked=False)], at(9), BACKOFF)
    assert conditions_of(waiting) == [("FailureTarget", "True", "DeadlineExceeded")]
    assert waiting.status.terminating == 1
    over = decide(job, [], at(9), BACKOFF)
    assert conditions_of(over)[-1] == ("Failed", "True", "DeadlineExceeded")


def test_an_interim_condition_is_not_taken_back():
    target = condition("FailureTarget", "DeadlineExceeded", "too long")
    job = a_job({"startTime": stamp(0), "conditions": [target]})
    *_, last = ending(job, [a_pod("Succeeded", ended=5)])
    assert conditions_of(last)[-1] == ("Failed", "True", "DeadlineExceeded")
    assert last.status.succeeded == 1


# --- suspension and time


def test_a_suspended_job_has_a_condition_and_no_start_time():
    decision = decide(a_job(suspend=True), [a_pod()], at(5), BACKOFF)
    assert (decision.status.start_time, decision.status.active) == ("", 0)
    assert conditions_of(decision) == [("Suspended", "True", "JobSuspended")]


def test_a_resumed_job_has_a_new_start_time():
    suspended = {"conditions": [condition("Suspended", "JobSuspended", "Job suspended")]}
    decision = decide(a_job(suspended, activeDeadlineSeconds=100), [], at(50), BACKOFF)
    assert decision.create
    assert decision.status.start_time == stamp(50)
    assert decision.requeue_after == timedelta(seconds=100)
    assert conditions_of(decision) == [("Suspended", "False", "JobResumed")]


@pytest.mark.parametrize(
    ("now", "expire", "wait"),
    [
        pytest.param(5, False, 5, id="it is kept until then"),
        pytest.param(10, True, None, id="and then deleted"),
    ],
)
def test_a_finished_job_has_a_ttl(now, expire, wait):
    finished = {"startTime": stamp(0), "conditions": [condition("Failed", "x", "y")]}
    decision = decide(a_job(finished, ttlSecondsAfterFinished=10), [], at(now), BACKOFF)
    assert decision.expire is expire
    assert decision.requeue_after == (None if wait is None else timedelta(seconds=wait))


def test_a_deleted_job_untracks_its_pods():
    job = a_job()
    going = type(job.metadata)(deletion_timestamp=stamp(0))
    decision = decide(type(job)(metadata=going), [a_pod()], at(5), BACKOFF)
    assert outcome(decision) == Expected(untrack=("p1",))


def test_ready_pods_are_counted():
    assert decide(a_job(), [a_pod(ready=True)], at(5), BACKOFF).status.ready == 1
