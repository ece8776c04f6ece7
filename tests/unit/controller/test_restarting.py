"""The condition `Restarting`: a launcher has failed and will be tried again."""

import pytest

from mpi_operator.controller.status import status_of
from tests.support.observations import (
    NOW,
    RUNNING_MESSAGE,
    a_job,
    a_launcher,
    a_launcher_pod,
    failed,
    observed,
    workers,
)
from tests.support.worlds import message_of, running_world

WRITTEN_IN = "mpi-operator.kubeflow.org/written-in"
EXIT_CODE = {"mpi-operator.kubeflow.org/launcher-restart-policy": "ExitCode"}
VERSIONS = ("v1", "v1alpha2")


def restarted(version, **changes):
    """A running world whose launcher has failed once and has a new pod."""
    world = running_world(annotations={WRITTEN_IN: version}, **changes)
    world.launcher_pod_fails()
    return world.settle()


def state(world):
    """The conditions, without `Created`."""
    return {kind: found for kind, found in world.conditions.items() if kind != "Created"}


@pytest.mark.parametrize("version", VERSIONS)
def test_it_replaces_running_and_is_replaced_by_it(version):
    world = restarted(version)
    assert state(world) == {"Restarting": "True MPIJobRestarting"}
    assert message_of(world, "Restarting") == "MPIJob lab/pi is restarting."
    world.pass_time(3)
    world.launcher_runs()
    world.settle()
    assert state(world) == {"Running": "True MPIJobRunning"}


@pytest.mark.parametrize("version", ["v2beta1", "v1alpha1"])
def test_other_versions_do_not_report_it(version):
    assert state(restarted(version)) == {"Running": "True MPIJobRunning"}


@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_over_when_the_launcher_runs_though_a_worker_does_not(version):
    world = restarted(version)
    world.worker_is_drained(0)
    world.launcher_runs()
    world.settle()
    assert state(world) == {"Running": "True MPIJobRunning"}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_job_that_was_restarted_and_succeeds_is_like_any_other(version):
    world = restarted(version)
    world.launcher_completes()
    world.rest()
    assert state(world) == {"Running": "False MPIJobRunning", "Succeeded": "True MPIJobSucceeded"}
    assert message_of(world, "Running") == RUNNING_MESSAGE


@pytest.mark.parametrize("version", VERSIONS)
def test_a_job_that_is_suspended_meanwhile_does_not_restart(version):
    world = restarted(version)
    world.suspend()
    world.rest()
    assert "Restarting" not in world.conditions
    assert world.conditions["Suspended"] == "True MPIJobSuspended"


@pytest.mark.parametrize("version", VERSIONS)
def test_the_last_try_is_not_reported_as_a_restart(version):
    world = running_world(annotations={WRITTEN_IN: version}, policy={"backoffLimit": 0})
    world.launcher_pod_fails()
    world.reconcile()
    assert "Restarting" not in world.conditions
    world.rest()
    assert state(world) == {
        "Running": "False MPIJobRunning",
        "Failed": "True BackoffLimitExceeded",
    }


def test_events_report_each_change_once():
    world = restarted("v1")
    world.launcher_runs()
    world.rest()
    assert world.events.reasons.count("MPIJobRestarting") == 1
    assert world.events.reasons.count("MPIJobRunning") == 2


CRASHED = {"waiting": {"reason": "CrashLoopBackOff"}}
RUNS = {"running": {"startedAt": "2026-03-01T12:00:00Z"}}
ENDED = {"terminated": {"exitCode": 1}}


@pytest.mark.parametrize(
    ("state", "restarts", "is_reported"),
    [
        pytest.param(RUNS, 0, False, id="its first try"),
        pytest.param(CRASHED, 1, True, id="its node waits before it starts it again"),
        pytest.param(ENDED, 1, True, id="its node is about to start it again"),
        pytest.param(RUNS, 1, False, id="it runs again"),
        pytest.param(CRASHED, 6, False, id="the limit is reached"),
        pytest.param({"terminated": {"exitCode": 0}}, 1, False, id="a container that is done"),
    ],
)
def test_a_launcher_that_is_restarted_in_its_pod(state, restarts, is_reported):
    job = a_job(annotations={WRITTEN_IN: "v1"})
    status = [{"name": "mpi", "restartCount": restarts, "state": state}]
    seen = observed(
        job,
        workers(job, "Running", "Running"),
        launcher=a_launcher(job, active=1),
        launcher_pods=(a_launcher_pod(job, containerStatuses=status),),
    )
    found = status_of(seen, (), NOW).conditions[-1]
    assert found.type == ("Restarting" if is_reported else "Running")


# --- exit codes -------------------------------------------------------------------------------


def test_a_launcher_is_restarted_after_a_signal_and_fails_after_an_error():
    world = running_world(annotations={WRITTEN_IN: "v1", **EXIT_CODE}, policy={"backoffLimit": 3})
    world.pass_time(10)
    world.launcher_pod_fails(exit_code=137)
    world.settle()
    assert state(world) == {"Restarting": "True MPIJobRestarting"}
    world.launcher_runs()
    world.settle()
    world.launcher_pod_fails(exit_code=2)
    world.rest()
    assert world.conditions["Failed"] == "True PodFailurePolicy"
    assert message_of(world, "Failed") == (
        "Launcher failed and is not retried: with the restart policy ExitCode, exit codes below "
        "128 are final (exit code 2)"
    )
    assert world.events.reasons.count("LauncherRestarted") == 1


def test_what_kubernetes_says_stays_where_the_exit_code_is_not_known():
    job = a_job(annotations=EXIT_CODE)
    why = "Container mpi for pod lab/pi-launcher-x failed with exit code 2 matching FailJob rule"
    seen = observed(job, launcher=a_launcher(job, **failed("PodFailurePolicy", why)))
    assert status_of(seen, (), NOW).conditions[-1].message == why
