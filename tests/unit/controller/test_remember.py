"""How the state of a job changes, and what of a plan it permits."""

from dataclasses import replace
from datetime import timedelta

import pytest

from mpi_operator.controller.actions import Create, delete
from mpi_operator.controller.execute import Outcome
from mpi_operator.controller.job_state import JobState, Refusal
from mpi_operator.controller.plan import Plan
from mpi_operator.controller.problems import Problem
from mpi_operator.controller.publish import Published
from mpi_operator.controller.remember import (
    after_error,
    after_execution,
    after_publishing,
    after_success,
    permitted_stages,
    remember,
)
from mpi_operator.kube.resources import PODS, SERVICES, Key
from tests.support.observations import (
    NOW,
    a_job,
    a_launcher,
    a_launcher_pod,
    a_service,
    a_worker,
    observed,
    terminated,
)

JOB = a_job()
POD = delete(PODS, a_worker(JOB, 0))
SERVICE = delete(SERVICES, a_service(JOB))
CREATION = Create(PODS, {"metadata": {"name": "pi-worker-1", "namespace": "lab"}})
PLAN = Plan(stages=((SERVICE,), (CREATION, POD)))
QUOTA = Problem("QuotaExceeded", "no")
LATER = timedelta(seconds=7)


def a_refusal(**changes):
    known = Refusal((QUOTA,), frozenset({(PODS, CREATION.key)}), 1, NOW + LATER, 1)
    return replace(known, **changes)


def refused():
    return Outcome(problems=[QUOTA], refused={(PODS, CREATION.key)})


def seen(*, job=JOB, **state):
    return observed(job, **state)


# --- what is observed -------------------------------------------------------------------------


def test_observing_twice_changes_nothing():
    known = observed(JOB, [a_worker(JOB, 0)], hosts=(), launcher_pods=(a_launcher_pod(JOB),))
    first = remember(JobState(), known, NOW)
    assert remember(first, known, NOW + LATER) == first


def test_when_the_launcher_lost_its_pod():
    with_pod = observed(JOB, launcher=a_launcher(JOB), launcher_pods=(a_launcher_pod(JOB),))
    without = observed(JOB, launcher=a_launcher(JOB))
    state = remember(JobState(), with_pod, NOW)
    state = remember(state, without, NOW + LATER)
    assert remember(state, without, NOW + 2 * LATER).launcher_pod_lost == NOW + LATER
    assert remember(state, with_pod, NOW + 2 * LATER).launcher_pod_lost is None


def test_a_launcher_that_never_had_a_pod_has_not_lost_one():
    assert remember(JobState(), observed(JOB), NOW).launcher_pod_lost is None


def test_since_when_a_launcher_is_done():
    pod = a_launcher_pod(JOB, "Succeeded", containerStatuses=terminated(0))
    done = observed(JOB, launcher_pods=(pod,))
    state = remember(remember(JobState(), done, NOW), done, NOW + LATER)
    assert state.launcher_done_since == NOW
    assert remember(state, observed(JOB), NOW + LATER).launcher_done_since is None


def test_hosts_that_change_after_the_list_was_written_count_anew():
    one = observed(JOB, [a_worker(JOB, 0)], hosts=())
    two = observed(JOB, [a_worker(JOB, 0), a_worker(JOB, 1)], hosts=(0,))
    change = remember(remember(JobState(), one, NOW), two, NOW + LATER).host_change
    assert change is not None
    assert (change.first, change.last) == (NOW + LATER, NOW + LATER)


# --- what is to be done -----------------------------------------------------------------------


def test_a_whole_plan_is_permitted_when_nothing_is_remembered():
    assert permitted_stages(PLAN, seen(), NOW) == PLAN.stages


def test_a_deletion_is_sent_once():
    known = seen(deleted=frozenset({POD, SERVICE}))
    assert permitted_stages(PLAN, known, NOW) == ((CREATION,),)


@pytest.mark.parametrize(
    ("refusal", "job", "stages"),
    [
        pytest.param(a_refusal(), JOB, PLAN.stages[:1], id="what was just refused"),
        pytest.param(a_refusal(until=NOW), JOB, PLAN.stages, id="refused a while ago"),
        pytest.param(a_refusal(generation=7), JOB, PLAN.stages, id="of another spec"),
        pytest.param(
            a_refusal(),
            a_job(status={"conditions": [{"type": "Failed", "status": "True"}]}),
            PLAN.stages,
            id="of a job that has finished",
        ),
    ],
)
def test_a_refused_write_waits(refusal, job, stages):
    assert permitted_stages(PLAN, seen(job=job, refusal=refusal), NOW) == stages


# --- what was done ----------------------------------------------------------------------------


def executed(outcome, plan=PLAN, **state):
    return after_execution(seen(**state), plan, outcome, NOW, jitter=0)


def test_deletions_are_forgotten_when_they_are_not_planned_any_more():
    state = executed(Outcome(deleted={POD}), deleted=frozenset({SERVICE}))
    assert state.deleted == {POD, SERVICE}
    assert executed(Outcome(), Plan(), deleted=state.deleted).deleted == frozenset()


def test_when_keys_were_checked():
    assert executed(Outcome(has_keys=True), keys_checked=None).keys_checked == NOW
    assert executed(Outcome(), keys_checked=None).keys_checked is None


def test_a_refusal_waits_longer_each_time():
    first = executed(refused()).refusal
    second = executed(refused(), refusal=replace(first, until=NOW)).refusal
    assert (first.times, second.times) == (1, 2)
    assert second.until > first.until > NOW


def test_a_second_refusal_waits_with_the_first():
    service = (SERVICES, Key("lab", "pi"))
    also = Outcome(problems=[Problem("Forbidden", "may not")], refused={service})
    refusal = executed(also, refusal=a_refusal()).refusal
    assert refusal.targets == {service, (PODS, CREATION.key)}
    assert [each.reason for each in refusal.problems] == ["Forbidden", "QuotaExceeded"]
    assert refusal.until == NOW + LATER


def test_a_refusal_is_over_when_nothing_is_refused():
    assert executed(Outcome(), refusal=a_refusal(until=NOW)).refusal is None


# --- what was published, and how it ended -----------------------------------------------------


def test_what_is_remembered_after_publishing():
    known = JobState(version="3", counts_changed=NOW, launcher_restarts=2)
    waits = Published(requeue_after=LATER, counts_changed=NOW)
    assert after_publishing(known, seen(), waits) == known
    stored = after_publishing(known, seen(), Published("4"))
    assert (stored.version, stored.counts_changed, stored.launcher_restarts) == ("4", None, 0)


def test_errors_that_last_are_reported_once():
    first = after_error(JobState(), NOW)
    assert not first.is_failure_reported
    assert after_error(first, NOW + timedelta(seconds=30)).is_failure_reported
    assert after_success(first) == JobState()
