"""Why a launcher failed, according to Kubernetes and its own output."""

from datetime import timedelta

import pytest

from mpi_operator.api.annotations import LAUNCHER_LAST_FAILURE
from mpi_operator.build.scripts import Event
from mpi_operator.controller.cached_types import JobCondition
from mpi_operator.controller.job_state import NO_FAILURE, LastFailure
from mpi_operator.controller.launcher_status import (
    failure,
    failure_annotation,
    last_failure,
)
from mpi_operator.controller.plan import make_plan
from mpi_operator.kube.resources import CONFIG_MAPS
from tests.support.observations import (
    NOW,
    PLAIN,
    a_config_map,
    a_job,
    a_launcher,
    a_launcher_pod,
    a_worker,
    observed,
    remote_shell_line,
    terminated,
    waiting,
    workers,
)
from tests.support.plans import changes

JOB = a_job()
LIMIT = JobCondition(
    type="Failed", status="True", reason="BackoffLimitExceeded", message="Job has reached its limit"
)

REFUSED = remote_shell_line(Event.GAVE_UP, seconds=600, cause="connect to host: Connection refused")


ENDED = {"terminated": {"exitCode": 134, "message": "Segmentation fault"}}


def a_try(number, age, **status):
    return a_launcher_pod(JOB, "Failed", number=number, age=timedelta(minutes=age), **status)


@pytest.mark.parametrize(
    ("failed", "pods", "expected"),
    [
        pytest.param(
            JobCondition(reason="DeadlineExceeded", message="Job was active too long"),
            [],
            ("DeadlineExceeded", "Job was active too long"),
            id="what the Job says",
        ),
        pytest.param(
            JobCondition(),
            [],
            ("MPIJobFailed", "MPIJob lab/pi has failed"),
            id="a Job without a message",
        ),
        pytest.param(
            LIMIT,
            [
                a_try(2, age=1, reason="FailedReason2", message="message 2"),
                a_try(1, age=2, reason="FailedReason1", message="message 1"),
            ],
            ("BackoffLimitExceeded/FailedReason2", "Job has reached its limit: message 2"),
            id="the pod that failed last",
        ),
        pytest.param(
            LIMIT,
            [a_try(1, age=2)],
            ("BackoffLimitExceeded", "Job has reached its limit"),
            id="a pod without a message adds nothing",
        ),
        pytest.param(
            LIMIT,
            [a_try(1, age=2, containerStatuses=terminated(1, "mpirun: no such file\n"))],
            (
                "BackoffLimitExceeded",
                "Job has reached its limit (exit code 1): mpirun: no such file",
            ),
            id="the exit code and the last lines of the launcher",
        ),
        pytest.param(
            LIMIT,
            [a_try(1, age=2, containerStatuses=terminated(137, reason="OOMKilled"))],
            ("BackoffLimitExceeded", "Job has reached its limit (exit code 137, OOMKilled)"),
            id="a launcher without output",
        ),
        pytest.param(
            LIMIT,
            [a_try(1, age=2, containerStatuses=terminated(1, f"{REFUSED}\nmpirun: failed"))],
            (
                "BackoffLimitExceeded",
                "Launcher gave up on pi-worker-1 after 600s: connect to host: Connection "
                "refused (Job has reached its limit (exit code 1))",
            ),
            id="its remote shell gave up: that comes first",
        ),
        pytest.param(
            JobCondition(reason="DeadlineExceeded", message="too long"),
            [a_try(1, age=2, reason="Evicted", containerStatuses=terminated(1, "step 7"))],
            ("DeadlineExceeded", "too long (exit code 1): step 7"),
            id="only a limit is made more precise by the pod",
        ),
        pytest.param(
            LIMIT,
            [a_launcher_pod(JOB, "Running", number=9, age=timedelta(0), message="alive")],
            ("BackoffLimitExceeded", "Job has reached its limit"),
            id="a pod that did not fail is ignored",
        ),
    ],
)
def test_why_a_job_failed(failed, pods, expected):
    assert failure(observed(JOB, launcher_pods=tuple(pods)), failed) == expected


def test_an_unreachable_worker_is_reported_with_its_own_problem():
    pod = a_try(1, age=2, containerStatuses=terminated(1, REFUSED))
    no_image = a_worker(JOB, 1, "Pending", containerStatuses=waiting("ErrImagePull", "no image"))
    seen = observed(JOB, [a_worker(JOB, 0), no_image], launcher_pods=(pod,))
    assert "refused; ImagePullFailed: container mpi: no image (Job has" in failure(seen, LIMIT)[1]


def test_a_failure_recorded_before_the_pod_was_deleted_is_reported():
    seen = observed(JOB, failure=LastFailure("exit code 139", "segmentation fault"))
    message = "Job has reached its limit (exit code 139): segmentation fault"
    assert failure(seen, LIMIT)[1] == message


def test_the_last_failure_is_that_of_the_youngest_pod_that_says_anything():
    tries = (
        a_try(1, age=3, containerStatuses=terminated(1, "first")),
        a_try(2, age=2, containerStatuses=terminated(2, "second")),
        a_launcher_pod(JOB, "Running", number=3, age=timedelta(0)),
    )
    seen = observed(JOB, launcher_pods=tries, failure=LastFailure("exit code 9", "before"))
    assert last_failure(seen) == LastFailure("exit code 2", "second")


def test_a_failure_that_is_not_recorded_yet_is_written_to_the_config_map():
    running = a_launcher(JOB)
    pod = a_launcher_pod(JOB, containerStatuses=[{"name": "mpi", "lastState": ENDED}])
    seen = observed(JOB, workers(JOB, "Running", "Running"), launcher=running, launcher_pods=(pod,))
    [change] = changes(make_plan(seen, PLAIN, NOW), CONFIG_MAPS)
    recorded = LastFailure("exit code 134", "Segmentation fault")
    assert change["metadata"]["annotations"] == failure_annotation(recorded)
    known = observed(
        JOB,
        workers(JOB, "Running", "Running"),
        launcher=running,
        launcher_pods=(pod,),
        failure=recorded,
    )
    assert changes(make_plan(known, PLAIN, NOW), CONFIG_MAPS) == []


@pytest.mark.parametrize("text", ["", "{", "7", '["a", 1]'])
def test_an_unreadable_annotation_is_no_failure(text):
    config_map = a_config_map(JOB)
    config_map.metadata.annotations[LAUNCHER_LAST_FAILURE] = text
    assert last_failure(observed(JOB, config_map=config_map)) == NO_FAILURE


def test_a_message_fits_into_a_condition():
    pod = a_try(1, age=1, containerStatuses=terminated(1, "x" * 4000))
    assert len(failure(observed(JOB, launcher_pods=(pod,)), LIMIT)[1]) == 1024
