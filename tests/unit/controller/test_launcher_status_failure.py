"""Why a launcher failed, in the words of Kubernetes and of the launcher."""

from datetime import timedelta

import pytest

from mpi_operator.controller.cached_types import JobCondition
from mpi_operator.controller.launcher_status import failure
from tests.support.observations import (
    a_job,
    a_launcher_pod,
    a_worker,
    observed,
    terminated,
    waiting,
)

JOB = a_job()
LIMIT = JobCondition(
    type="Failed", status="True", reason="BackoffLimitExceeded", message="Job has reached its limit"
)

REFUSED = "mpi-operator: gave up on pi-worker-1 after 600 s: connect to host: Connection refused"


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
            id="a Job that is mute",
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
            id="a pod that is mute adds nothing",
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
            id="a launcher that was silenced",
        ),
        pytest.param(
            LIMIT,
            [a_try(1, age=2, containerStatuses=terminated(1, f"{REFUSED}\nmpirun: failed"))],
            (
                "BackoffLimitExceeded",
                "The launcher gave up on pi-worker-1 after 600 s: connect to host: Connection "
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
            id="who did not fail is not asked",
        ),
    ],
)
def test_why_a_job_failed(failed, pods, expected):
    assert failure(observed(JOB, launcher_pods=tuple(pods)), failed) == expected


def test_a_worker_that_was_given_up_is_asked_why():
    pod = a_try(1, age=2, containerStatuses=terminated(1, REFUSED))
    no_image = a_worker(JOB, 1, "Pending", containerStatuses=waiting("ErrImagePull", "no image"))
    seen = observed(JOB, [a_worker(JOB, 0), no_image], launcher_pods=(pod,))
    assert "refused; ImagePullFailed: container mpi: no image (Job has" in failure(seen, LIMIT)[1]


def test_what_was_heard_before_the_pod_went_is_told():
    seen = observed(JOB, last_words="segmentation fault", last_exit="exit code 139")
    told = "Job has reached its limit (exit code 139): segmentation fault"
    assert failure(seen, LIMIT)[1] == told


def test_a_message_is_as_long_as_a_condition_takes():
    pod = a_try(1, age=1, containerStatuses=terminated(1, "x" * 4000))
    assert len(failure(observed(JOB, launcher_pods=(pod,)), LIMIT)[1]) == 1024
