"""A restart of the launcher gets one event."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from mpi_operator.api.types import ReplicaStatus, ReplicaStatuses
from mpi_operator.controller.job_state import LastFailure
from mpi_operator.controller.launcher_status import launcher_events
from mpi_operator.controller.status import status_of
from tests.support.observations import (
    NOW,
    a_job,
    a_launcher,
    a_launcher_pod,
    failed,
    observed,
    terminated,
    with_status,
)


def events(seen, known_restarts=0):
    found = launcher_events(seen, status_of(seen, (), NOW), known_restarts)
    return [f"{each.reason}: {each.message}" for each in found]


def a_job_with(failures, **changes):
    """A job whose status counts so many failures."""
    job = a_job(**changes)
    counts = ReplicaStatuses(launcher=ReplicaStatus(failed=failures))
    return with_status(job, replace(job.status, replica_statuses=counts))


JOB = a_job()
AGAIN = a_launcher_pod(
    JOB,
    containerStatuses=[
        {"name": "mpi", "restartCount": 1, "lastState": {"terminated": {"exitCode": 1}}}
    ],
)
EVICTED = a_launcher_pod(
    JOB, "Failed", number=1, age=timedelta(hours=1), containerStatuses=[{"restartCount": 1}]
)
DIED = a_launcher_pod(JOB, "Failed", containerStatuses=terminated(137, "step 7"))


@pytest.mark.parametrize(
    ("seen", "message"),
    [
        pytest.param(
            observed(JOB, launcher=a_launcher(JOB, failed=1), launcher_pods=(DIED,)),
            "Launcher is being restarted (1 of 6): pi-launcher-0: container mpi ended with "
            "exit code 137: step 7",
            id="how its pod ended",
        ),
        pytest.param(
            observed(JOB, launcher=a_launcher(JOB, failed=1), failure=LastFailure("exit code 137")),
            "Launcher is being restarted (1 of 6): the pod is gone (exit code 137)",
            id="a pod that was deleted",
        ),
        pytest.param(
            observed(a_job_with(1, policy={"backoffLimit": 3}), launcher=a_launcher(JOB, failed=2)),
            "Launcher is being restarted (2 of 3): the pod is gone",
            id="another time",
        ),
        pytest.param(
            observed(JOB, launcher=a_launcher(JOB), launcher_pods=(AGAIN,)),
            "Launcher is being restarted (1 of 6): pi-launcher-0: container mpi ended with "
            "exit code 1",
            id="in the same pod",
        ),
        pytest.param(
            observed(
                a_job(policy={"backoffLimit": 2}),
                launcher=a_launcher(JOB, failed=1),
                launcher_pods=(AGAIN, EVICTED),
            ),
            "Launcher is being restarted (2 of 2): pi-launcher-0: container mpi ended with "
            "exit code 1",
            id="in the same pod, after one that was evicted",
        ),
    ],
)
def test_a_launcher_restart_is_reported(seen, message):
    assert events(seen) == [f"LauncherRestarted: {message}"]


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(observed(JOB), id="there is no launcher"),
        pytest.param(observed(JOB, launcher=a_launcher(JOB)), id="nothing happened"),
        pytest.param(
            observed(a_job_with(1), launcher=a_launcher(JOB, failed=1)), id="it is reported already"
        ),
        pytest.param(
            observed(JOB, launcher=a_launcher(JOB, failed=1, **failed())), id="it was the last try"
        ),
        pytest.param(
            observed(a_job(policy={"backoffLimit": 0}), launcher=a_launcher(JOB, failed=1)),
            id="it was the last try, and its Job does not say so yet",
        ),
        *(
            pytest.param(
                observed(
                    a_job(policy={"backoffLimit": limit}),
                    launcher=a_launcher(JOB),
                    launcher_pods=(AGAIN,),
                ),
                id=f"in its pod with a limit of {limit}, where Kubernetes ends it at once",
            )
            for limit in (0, 1)
        ),
    ],
)
def test_a_launcher_that_is_not_restarted_has_no_event(seen):
    assert events(seen) == []


def test_a_known_restart_is_not_reported_again():
    seen = observed(JOB, launcher=a_launcher(JOB), launcher_pods=(AGAIN,))
    assert events(seen, known_restarts=1) == []
