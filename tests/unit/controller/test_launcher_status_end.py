"""When a launcher has ended, according to its pod or its Job."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from mpi_operator.api.types import ReplicaStatus
from mpi_operator.controller.launcher_status import has_ended, has_succeeded, success_time
from mpi_operator.controller.plan import make_plan
from mpi_operator.controller.status import status_of
from mpi_operator.kube.resources import JOBS
from mpi_operator.local.times import timestamp
from tests.support.observations import (
    NOW,
    PLAIN,
    a_job,
    a_launcher,
    a_launcher_pod,
    complete,
    failed,
    observed,
    terminated,
    with_status,
    workers,
)

JOB = a_job(mpiImplementation="MPICH")
EARLIER = NOW - timedelta(seconds=7)
DONE = terminated(0, finishedAt=timestamp(EARLIER))


def pod(phase="Succeeded", *, deleted=False, containers=DONE, why=""):
    unready = [{"type": "Ready", "status": "False", "reason": why}] if why else []
    made = a_launcher_pod(JOB, phase, containerStatuses=containers, conditions=unready)
    ending = replace(made.metadata, deletion_timestamp=timestamp(NOW)) if deleted else made.metadata
    return replace(made, metadata=ending)


def seen(*pods, job=JOB, launcher=True, suspend=False, **status):
    made = a_launcher(job, suspend=suspend, **status) if launcher else None
    return observed(job, workers(job, "Running", "Running"), launcher=made, launcher_pods=pods)


@pytest.mark.parametrize(
    ("world", "succeeded", "ended"),
    [
        pytest.param(seen(pod("Running")), False, False, id="it runs"),
        pytest.param(
            seen(pod("Running", why="PodCompleted")), True, True, id="its node calls it completed"
        ),
        pytest.param(
            seen(pod("Running", why="ContainersNotReady")),
            False,
            False,
            id="its container has ended, and another one or a sidecar runs",
        ),
        pytest.param(
            seen(pod("Running", why="PodFailed")),
            False,
            False,
            id="its container has ended well because the time of the pod was up",
        ),
        pytest.param(
            seen(pod("Running", why="PodCompleted", deleted=True)),
            False,
            False,
            id="completed, and being deleted",
        ),
        pytest.param(seen(pod()), True, True, id="its pod has succeeded, its Job says nothing yet"),
        pytest.param(seen(pod(), **complete()), True, True, id="both say so"),
        pytest.param(seen(**complete()), True, True, id="its pod is gone, its Job says so"),
        pytest.param(seen(pod("Failed")), False, False, id="a failed pod may be retried"),
        pytest.param(seen(pod("Failed"), **failed()), False, True, id="its Job has failed"),
        pytest.param(seen(pod(), **failed()), False, True, id="the Job has failed despite that"),
        pytest.param(seen(pod("Failed"), pod()), True, True, id="at the second try"),
        pytest.param(seen(pod(deleted=True)), False, False, id="a pod that is being deleted"),
        pytest.param(
            seen(pod(deleted=True), **complete()),
            True,
            True,
            id="a pod that is being deleted, counted by its Job",
        ),
        pytest.param(seen(pod(), launcher=False), False, False, id="a pod of no Job that we know"),
        pytest.param(seen(), False, False, id="no pod"),
    ],
)
def test_whether_a_launcher_has_ended(world, succeeded, ended):
    assert (has_succeeded(world), has_ended(world)) == (succeeded, ended)


@pytest.mark.parametrize(
    ("world", "time"),
    [
        pytest.param(seen(pod()), EARLIER, id="the end of its container"),
        pytest.param(seen(pod(), **complete(NOW)), NOW, id="its Job takes precedence"),
        pytest.param(
            seen(pod(containers=terminated(0, finishedAt=None))),
            None,
            id="its node does not know the time",
        ),
        pytest.param(seen(pod(containers=[])), None, id="the time is unknown"),
    ],
)
def test_when_a_launcher_succeeded(world, time):
    assert success_time(world) == time


def test_a_job_has_succeeded_when_the_pod_of_its_launcher_has():
    status = status_of(seen(pod()), (), NOW)
    assert status.conditions[-1].type == "Succeeded"
    assert status.completion_time == EARLIER
    assert status.replica_statuses.launcher == ReplicaStatus(succeeded=1)


def test_a_job_that_is_suspended_when_it_has_just_succeeded_has_succeeded():
    job = a_job(policy={"suspend": True}, mpiImplementation="MPICH")
    world = seen(pod(), job=job)
    assert make_plan(world, PLAIN, NOW).actions == ()
    assert status_of(world, (), NOW).conditions[-1].type == "Succeeded"


def test_a_launcher_that_has_succeeded_is_not_stopped_before_its_job_says_so():
    ended = with_status(JOB, status_of(seen(pod()), (), NOW))
    plan = make_plan(seen(pod(), job=ended), PLAIN, NOW)
    assert [action for action in plan.actions if getattr(action, "resource", None) == JOBS] == []
