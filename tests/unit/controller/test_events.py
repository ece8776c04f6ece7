"""Which events follow which change of status."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from mpi_operator.api.types import (
    Condition,
    ConditionStatus,
    MPIJobStatus,
    ReplicaStatus,
    ReplicaStatuses,
)
from mpi_operator.controller.events import can_wait, status_events
from mpi_operator.controller.problems import Problem
from tests.support.observations import NOW

QUOTA = Problem("QuotaExceeded", "exceeded quota")
INVALID = Problem("ValidationError", "spec.slotsPerWorker: must be at least 0, got -1")


def condition(kind, status="True", reason=None, message="so it is"):
    return Condition(
        type=kind,
        status=ConditionStatus(status),
        reason=reason or f"MPIJob{kind}",
        message=message,
    )


def status(*conditions):
    return MPIJobStatus(conditions=conditions)


CREATED, RUNNING = condition("Created"), condition("Running")
STOPPED = condition("Running", "False")


def events_of(old, new, problem=None):
    return [
        f"{event.severity.value} {event.reason}: {event.message}"
        for event in status_events(old, new, [problem] if problem else [])
    ]


@pytest.mark.parametrize(
    ("old", "new", "events"),
    [
        pytest.param([], [CREATED], ["Normal MPIJobCreated: so it is"], id="created"),
        pytest.param([CREATED], [CREATED], [], id="nothing happened"),
        pytest.param(
            [CREATED], [CREATED, RUNNING], ["Normal MPIJobRunning: so it is"], id="running"
        ),
        pytest.param(
            [CREATED, RUNNING],
            [CREATED, STOPPED, condition("Suspended")],
            ["Normal MPIJobSuspended: so it is"],
            id="suspended",
        ),
        pytest.param(
            [CREATED, condition("Suspended")],
            [condition("Suspended", "False", "MPIJobResumed"), CREATED],
            ["Normal MPIJobResumed: so it is"],
            id="resumed",
        ),
        pytest.param(
            [CREATED, RUNNING],
            [CREATED, STOPPED, condition("Succeeded")],
            ["Normal MPIJobSucceeded: so it is"],
            id="succeeded",
        ),
        pytest.param(
            [CREATED, RUNNING],
            [CREATED, STOPPED, condition("Failed", reason="BackoffLimitExceeded")],
            ["Warning BackoffLimitExceeded: so it is"],
            id="failed",
        ),
        pytest.param(
            [],
            [CREATED, STOPPED, condition("Succeeded")],
            ["Normal MPIJobCreated: so it is", "Normal MPIJobSucceeded: so it is"],
            id="first seen when it was finished",
        ),
        pytest.param(
            [CREATED, condition("Running", "False", "QuotaExceeded")],
            [CREATED, condition("Running", "False", "MPIJobStarting")],
            [],
            id="a problem that has passed",
        ),
    ],
)
def test_which_events_follow_which_change(old, new, events):
    assert events_of(status(*old), status(*new)) == events


@pytest.mark.parametrize(
    ("old", "new", "problem", "events"),
    [
        pytest.param(
            [CREATED],
            [CREATED, condition("Running", "False", "QuotaExceeded")],
            QUOTA,
            ["Warning QuotaExceeded: exceeded quota"],
            id="it cannot start",
        ),
        pytest.param(
            [CREATED],
            [CREATED, condition("Running", "False", "ValidationError")],
            INVALID,
            [f"Warning ValidationError: Found validation errors: {INVALID.message}"],
            id="it is invalid",
        ),
        pytest.param(
            [CREATED, RUNNING],
            [CREATED, replace(RUNNING, message="so it is. exceeded quota")],
            QUOTA,
            ["Warning QuotaExceeded: exceeded quota"],
            id="it runs, and it has a problem",
        ),
        pytest.param(
            [CREATED, replace(RUNNING, message="so it is. exceeded quota")],
            [CREATED, RUNNING],
            None,
            [],
            id="the problem is gone",
        ),
        pytest.param(
            [CREATED, replace(RUNNING, message="so it is. exceeded quota")],
            [CREATED, replace(RUNNING, message="so it is. exceeded quota")],
            QUOTA,
            [],
            id="the same problem remains",
        ),
        pytest.param(
            [CREATED, RUNNING],
            [CREATED, STOPPED, condition("Failed", reason="QuotaExceeded")],
            QUOTA,
            ["Warning QuotaExceeded: so it is"],
            id="it failed because of the problem: one event",
        ),
    ],
)
def test_which_events_follow_a_problem(old, new, problem, events):
    assert events_of(status(*old), status(*new), problem) == events


ONE = ReplicaStatuses(worker=ReplicaStatus(active=1))


@pytest.mark.parametrize(
    ("change", "waits"),
    [
        pytest.param({"replica_statuses": ONE}, True, id="how many run"),
        pytest.param({"conditions": (CREATED, RUNNING)}, False, id="conditions"),
        pytest.param({"start_time": NOW}, False, id="when it started"),
        pytest.param({"completion_time": NOW + timedelta(1)}, False, id="when it completed"),
        pytest.param({"observed_generation": 2}, True, id="which spec it is about"),
        pytest.param({"selector": "a=b"}, False, id="the selector of its workers"),
        pytest.param({"replica_statuses": ONE, "start_time": NOW}, False, id="more than counts"),
    ],
)
def test_which_status_changes_can_wait(change, waits):
    old = status(CREATED)
    assert can_wait(old, replace(old, **change)) == waits


def test_the_first_status_cannot_wait():
    assert not can_wait(MPIJobStatus(), MPIJobStatus(replica_statuses=ONE))
