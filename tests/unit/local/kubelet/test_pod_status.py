"""The status of a pod, from the status of its containers."""

from datetime import UTC, datetime, timedelta

import pytest

from mpi_operator.local.kubelet.pod_status import (
    ContainerStatus,
    Failure,
    PodFacts,
    Running,
    Terminated,
    Waiting,
    is_restarted,
    phase_of,
    status_of,
    unschedulable,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
WELL = Terminated(0, NOW, NOW)
BADLY = Terminated(3, NOW, NOW)


def container(state=None, **facts):
    return ContainerStatus(facts.pop("name", "main"), "image", state=state or Waiting(), **facts)


def status(*containers, policy="Never", previous=None, failure=None, now=NOW):
    facts = PodFacts(policy, NOW, "127.77.0.1", "127.0.0.1")
    return status_of(containers, facts, now, previous or {}, failure)


def condition(found, kind):
    return next(each for each in found["conditions"] if each["type"] == kind)


@pytest.mark.parametrize(
    ("containers", "policy", "phase"),
    [
        ([container()], "Never", "Pending"),
        ([container(Running(NOW))], "Never", "Running"),
        ([container(Running(NOW)), container()], "Never", "Pending"),
        ([container(WELL)], "Never", "Succeeded"),
        ([container(BADLY)], "Never", "Failed"),
        ([container(WELL), container(BADLY)], "Never", "Failed"),
        ([container(WELL), container(Running(NOW))], "Never", "Running"),
        ([container(BADLY)], "OnFailure", "Running"),
        ([container(WELL)], "OnFailure", "Succeeded"),
        ([container(WELL)], "Always", "Running"),
        pytest.param([container(last=BADLY)], "OnFailure", "Running", id="between two starts"),
        ([container(BADLY, is_init=True), container()], "Never", "Failed"),
        ([container(BADLY, is_init=True), container()], "OnFailure", "Pending"),
        ([container(WELL, is_init=True), container(Running(NOW))], "Never", "Running"),
        pytest.param(
            [container(Running(NOW), is_init=True, is_sidecar=True), container(WELL)],
            "Never",
            "Succeeded",
            id="a running sidecar does not matter",
        ),
    ],
)
def test_phases(containers, policy, phase):
    assert phase_of(containers, policy) == phase


@pytest.mark.parametrize(
    ("known", "policy", "again"),
    [
        (container(WELL), "Always", True),
        (container(WELL), "OnFailure", False),
        (container(BADLY), "OnFailure", True),
        (container(BADLY), "Never", False),
        (container(WELL, is_init=True), "Always", False),
        (container(BADLY, is_init=True), "Always", True),
        (container(BADLY, is_init=True), "Never", False),
        (container(WELL, is_init=True, is_sidecar=True), "Never", True),
    ],
)
def test_which_containers_are_restarted(known, policy, again):
    assert is_restarted(known, policy) == again


def test_a_ready_pod():
    found = status(container(Running(NOW), is_ready=True))
    assert condition(found, "Ready")["status"] == "True"
    assert found["containerStatuses"][0]["state"] == {
        "running": {"startedAt": "2026-01-02T03:04:05Z"}
    }
    assert found["podIP"] == "127.77.0.1"


def test_a_pod_that_is_not_ready_says_who():
    found = status(container(Running(NOW), name="slow"))
    assert "slow" in condition(found, "Ready")["message"]


@pytest.mark.parametrize(
    ("code", "exit_code", "signal"), [(3, 3, None), (-9, 137, 9), (-15, 143, 15)]
)
def test_how_it_ended(code, exit_code, signal):
    found = status(container(Terminated(code, NOW, NOW, message="last words")))
    ended = found["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended.get("signal")) == (exit_code, signal)
    assert (ended["reason"], ended["message"]) == ("Error", "last words")


def test_the_last_end_is_kept_over_a_restart():
    known = container(BADLY).changed(Waiting("CrashLoopBackOff")).changed(Waiting(), restarts=1)
    found = status(known.changed(Running(NOW)), policy="OnFailure")["containerStatuses"][0]
    assert found["restartCount"] == 1
    assert found["lastState"]["terminated"]["exitCode"] == 3


def test_times_of_conditions_are_of_changes():
    before = status(container(Running(NOW)))
    later = status(
        container(Running(NOW), is_ready=True), previous=before, now=NOW + timedelta(minutes=1)
    )
    assert condition(later, "PodScheduled")["lastTransitionTime"] == "2026-01-02T03:04:05Z"
    assert condition(later, "Ready")["lastTransitionTime"] == "2026-01-02T03:05:05Z"


def test_a_failure_of_the_whole_pod_is_final():
    failure = Failure("DeadlineExceeded", "too long")
    found = status(container(Running(NOW), is_ready=True), failure=failure)
    assert (found["phase"], found["reason"]) == ("Failed", "DeadlineExceeded")
    assert condition(found, "Ready")["status"] == "False"


def test_a_pod_that_does_not_fit():
    found = unschedulable("Insufficient cpu", NOW, {})
    assert found["phase"] == "Pending"
    assert condition(found, "PodScheduled")["reason"] == "Unschedulable"
