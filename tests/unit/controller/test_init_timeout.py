"""The init timeout: how long a start may take."""

from datetime import timedelta

import pytest

from mpi_operator.build.scripts import Event
from mpi_operator.controller.init_timeout import init_timeout
from mpi_operator.controller.launcher_log import unreachable_worker
from mpi_operator.kube.resources import JOBS, PODS, Key
from mpi_operator.local.times import timestamp
from tests.support.observations import (
    NOW,
    a_job,
    a_launcher,
    a_launcher_pod,
    a_worker,
    observed,
    remote_shell_line,
    terminated,
    unschedulable,
    workers,
)
from tests.support.worlds import World

TEN_MINUTES = {"mpi-operator.kubeflow.org/init-timeout": "10m"}
WAITS = {"launcherCreationPolicy": "WaitForWorkersReady"}
CAUSE = "connect to host x: Connection refused"
REFUSED = remote_shell_line(Event.GAVE_UP, seconds=600, cause=CAUSE)
GAVE_UP = f"Launcher gave up on pi-worker-1 after 600s: {CAUSE}"


def a_start(minutes=10, *conditions, **changes):
    """A job that started so many minutes ago."""
    changes = {"annotations": TEN_MINUTES, **changes}
    began = timestamp(NOW - timedelta(minutes=minutes))
    return a_job(status={"startTime": began, "conditions": list(conditions)}, **changes)


def restarted(statuses):
    return [each | {"restartCount": 1} for each in statuses]


JOB = a_start()
RUNS = {"type": "Running", "status": "True"}
SUSPENDED = {"type": "Suspended", "status": "True"}


@pytest.mark.parametrize(
    ("seen", "ending"),
    [
        pytest.param(
            observed(JOB, workers(JOB, "Running", "Pending"), launcher=a_launcher(JOB)),
            "Job did not start within 600s (mpi-operator.kubeflow.org/init-timeout): 1 of 2 "
            "workers is not running: pi-worker-1",
            id="a worker that does not run",
        ),
        pytest.param(
            observed(JOB),
            "2 of 2 workers are not running, for example pi-worker-0",
            id="workers that are not even there",
        ),
        pytest.param(
            observed(a_start(workers=1)), ": worker pi-worker-0 is not running", id="the only one"
        ),
        pytest.param(
            observed(a_start(**WAITS), [a_worker(JOB, 0), a_worker(JOB, 1, ready=False)]),
            "1 of 2 workers is not ready: pi-worker-1",
            id="a worker that is not ready, where the launcher waits for that",
        ),
        pytest.param(
            observed(JOB, workers(JOB, "Running", "Running"), launcher=a_launcher(JOB)),
            "the launcher is not running",
            id="a launcher that does not run",
        ),
        pytest.param(
            observed(
                a_start(1, RUNS),
                workers(JOB, "Running", "Running"),
                launcher=a_launcher(JOB, failed=1),
                launcher_pods=(
                    a_launcher_pod(JOB, "Failed", containerStatuses=terminated(1, REFUSED)),
                ),
            ),
            GAVE_UP,
            id="a worker that the launcher does not reach",
        ),
    ],
)
def test_a_start_that_takes_too_long_names_what_is_missing(seen, ending):
    [problem] = init_timeout(seen, NOW).problems
    assert (problem.reason, problem.is_fatal) == ("InitTimeout", True)
    assert problem.message.endswith(ending)


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(observed(a_start(annotations={})), id="without the annotation"),
        pytest.param(
            observed(a_start(annotations={"mpi-operator.kubeflow.org/init-timeout": "soon"})),
            id="the annotation is no duration",
        ),
        pytest.param(observed(a_start(9)), id="there is time left"),
        pytest.param(observed(a_job(annotations=TEN_MINUTES)), id="it has not begun"),
        pytest.param(observed(a_start(99, SUSPENDED)), id="it was just resumed"),
        pytest.param(observed(a_start(99, RUNS)), id="it has run"),
        pytest.param(
            observed(a_start(99), launcher=a_launcher(JOB, failed=1)), id="its launcher has failed"
        ),
        pytest.param(
            observed(
                a_start(99),
                workers(JOB, "Running", "Running"),
                launcher=a_launcher(JOB),
                launcher_pods=(a_launcher_pod(JOB),),
            ),
            id="it runs, which is not stored yet",
        ),
        pytest.param(
            observed(
                a_start(99, RUNS, annotations={}),
                launcher_pods=(
                    a_launcher_pod(JOB, "Failed", containerStatuses=terminated(1, REFUSED)),
                ),
            ),
            id="its launcher timed out, and will be retried",
        ),
        pytest.param(
            observed(
                a_start(99, RUNS),
                workers(JOB, "Running", "Running"),
                launcher=a_launcher(JOB, failed=2),
                launcher_pods=(
                    a_launcher_pod(JOB, "Failed", number=1, containerStatuses=terminated(1, "")),
                    a_launcher_pod(
                        JOB,
                        "Failed",
                        number=2,
                        age=timedelta(0),
                        containerStatuses=terminated(1, REFUSED),
                    ),
                ),
            ),
            id="a second try gave up: the start was long ago",
        ),
        pytest.param(
            observed(
                a_start(99, RUNS),
                workers(JOB, "Running", "Running"),
                launcher=a_launcher(JOB),
                launcher_pods=(
                    a_launcher_pod(JOB, containerStatuses=restarted(terminated(1, REFUSED))),
                ),
            ),
            id="a second try in the same pod timed out",
        ),
    ],
)
def test_a_start_that_does_not_time_out(seen):
    assert init_timeout(seen, NOW).problems == ()


@pytest.mark.parametrize(
    ("job", "left"),
    [
        (a_start(4), timedelta(minutes=6)),
        (a_start(4, SUSPENDED), timedelta(minutes=10)),
        (a_job(annotations=TEN_MINUTES), timedelta(minutes=10)),
        (a_start(4, RUNS), None),
        (a_start(4, annotations={}), None),
    ],
)
def test_when_the_job_is_requeued_for_its_init_timeout(job, left):
    assert init_timeout(observed(job), NOW).requeue_after == left


def unschedulable_worker(world):
    key = Key("lab", "pi-worker-1")
    status = {"phase": "Pending", "conditions": unschedulable("0/2 nodes are available")}
    world.cluster.patch_status(PODS, key, status)


def failed(world):
    return next(each for each in world.job.status.conditions if each.type == "Failed")


@pytest.mark.parametrize("policy", ["AtStartup", "WaitForWorkersReady"])
def test_a_job_that_does_not_start_fails_and_its_launcher_ends(policy):
    world = World(2, annotations=TEN_MINUTES, launcherCreationPolicy=policy).settle()
    world.worker_runs(0)
    unschedulable_worker(world)
    world.launcher_runs()
    world.rest()
    assert world.conditions["Failed"] == "True InitTimeout"
    assert "pi-worker-1: 0/2 nodes are available" in failed(world).message
    launcher = world.cluster.find(JOBS, Key("lab", "pi-launcher"))
    assert launcher is None or launcher["spec"]["suspend"]
    assert world.now - NOW == timedelta(minutes=10)


def test_a_job_without_the_annotation_never_times_out():
    world = World(2).settle()
    unschedulable_worker(world)
    world.pass_time(10_000_000)
    world.settle()
    assert "Failed" not in world.conditions


def test_a_resumed_job_gets_its_whole_init_timeout_again():
    world = World(2, annotations=TEN_MINUTES).settle()
    world.pass_time(500)
    world.suspend()
    world.rest()
    world.pass_time(5000)
    world.resume()
    world.settle()
    world.pass_time(599)
    world.settle()
    assert "Failed" not in world.conditions
    world.pass_time(1)
    world.settle()
    assert world.conditions["Failed"] == "True InitTimeout"


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        pytest.param("", "", id="no output"),
        pytest.param("mpirun: failed", "", id="other output"),
        pytest.param(
            f"{REFUSED}\n{REFUSED.replace('worker-1', 'worker-2')}\n",
            GAVE_UP,
            id="the first worker that timed out",
        ),
        pytest.param(
            f"[1] {REFUSED}",
            GAVE_UP,
            id="with a prefix of mpirun",
        ),
    ],
)
def test_the_report_of_an_unreachable_worker_quotes_the_remote_shell(output, sentence):
    assert unreachable_worker(observed(a_job()), output) == sentence


@pytest.mark.parametrize(
    ("validation_errors", "cause"),
    [
        pytest.param("", "sshd is not listening yet", id="our probe asks whether its sshd listens"),
        pytest.param("the job is invalid", "a readiness probe fails", id="the probe is unknown"),
    ],
)
def test_the_problem_of_an_unreachable_worker_is_reported_too(validation_errors, cause):
    runs = [{"name": "mpi", "state": {"running": {}}}]
    worker = a_worker(JOB, 1, ready=False, containerStatuses=runs)
    sentence = unreachable_worker(
        observed(JOB, [worker], validation_errors=validation_errors), REFUSED
    )
    assert sentence.startswith(f"{GAVE_UP}; NotReady: ")
    assert cause in sentence
