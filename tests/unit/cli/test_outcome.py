"""The end of a job that `mpijob` ran."""

import pytest

from mpi_operator.api import labels
from mpi_operator.api.decode import decode_job
from mpi_operator.cli.job_output import outcome
from mpi_operator.cli.job_output.job_stream import Line
from mpi_operator.cli.job_output.launcher_failure import LastLines
from mpi_operator.cli.job_output.rank_tags import OPTIONS
from tests.support.mpijobs import mpijob

JOB = decode_job(mpijob("pi"))


def status(code, **more):
    return [{"name": "x", "state": {"terminated": {"exitCode": code, **more}}}]


def launcher(**statuses):
    marked = {"name": "pi-launcher-x", "labels": labels.launcher_labels(JOB)}
    return {"kind": "Pod", "metadata": marked, "status": statuses}


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        pytest.param({"containerStatuses": status(3)}, 3, id="a container"),
        pytest.param({"initContainerStatuses": status(7)}, 7, id="an init container"),
        pytest.param(
            {"initContainerStatuses": status(0), "containerStatuses": status(3)}, 3, id="both"
        ),
        pytest.param({}, 1, id="unknown"),
    ],
)
def test_the_exit_code_is_that_of_the_launcher(statuses, code):
    assert outcome.end_of(JOB, [launcher(**statuses)], LastLines()).exit_code == code


FAILED = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "limit"}


@pytest.mark.parametrize(
    ("statuses", "cause"),
    [
        pytest.param(
            {"containerStatuses": status(3)}, "exit code 3, nothing was printed", id="a container"
        ),
        pytest.param(
            {"initContainerStatuses": status(7)},
            "exit code 7, nothing was printed (init container x)",
            id="an init container",
        ),
        pytest.param(
            {"containerStatuses": status(127, reason="StartError", message="container x: no")},
            "container x: no",
            id="one that never ran",
        ),
        pytest.param(
            {"initContainerStatuses": status(127, reason="StartError", message="container x: no")},
            "container x: no (init container x)",
            id="an init container that never ran",
        ),
        pytest.param({}, "", id="unknown"),
    ],
)
def test_a_launcher_that_printed_nothing_leaves_its_exit_code_or_why_it_did_not_start(
    statuses, cause
):
    job = decode_job({**mpijob("pi"), "status": {"conditions": [FAILED]}})
    assert outcome.end_of(job, [launcher(**statuses)], LastLines()).cause == cause


def test_the_cause_is_found_in_pieces_of_lines_that_mpirun_tagged():
    main = {"name": "main", "command": ["mpirun", *OPTIONS["MPICH"], "a"]}
    manifest = mpijob("pi", launcher={"template": {"spec": {"containers": [main]}}})
    job = decode_job({**manifest, "status": {"conditions": [FAILED]}})
    lines = LastLines()
    said = b"[,0]<stdout>: 1[,1]<stdout>: ValueError[,0]<stdout>: 2[,1]<stdout>: : no"
    lines.note(Line("pi-launcher-x", labels.Role.LAUNCHER, said))
    pods = [launcher(containerStatuses=status(1))]
    assert outcome.end_of(job, pods, lines).cause == "ValueError: no"


def worker(index=0, phase="Failed", **statuses):
    marked = {"name": f"pi-worker-{index}", "labels": labels.worker_labels(JOB, index)}
    return {"kind": "Pod", "metadata": marked, "status": {"phase": phase, **statuses}}


def deleted(pod):
    return {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}


EARLY, LATE, LATEST = (f"2026-01-01T00:00:0{second}Z" for second in (1, 2, 3))
FAILED_WORKER = worker(containerStatuses=status(3, finishedAt=EARLY))
RUNNING = [{"name": "x", "state": {"running": {}}, "lastState": status(3)[0]["state"]}]
CRASHED = [{"name": "x", "state": {"waiting": {}}, "lastState": status(3)[0]["state"]}]
SILENT = "exit code 255, nothing was printed"


@pytest.mark.parametrize(
    ("workers", "cause"),
    [
        pytest.param(
            [FAILED_WORKER], "pi-worker-0: container x failed with exit code 3", id="its program"
        ),
        pytest.param(
            [worker(phase="Pending", initContainerStatuses=status(3))],
            "pi-worker-0: init container x failed with exit code 3",
            id="its init container",
        ),
        pytest.param(
            [worker(containerStatuses=status(127, reason="StartError", message="no such program"))],
            "pi-worker-0: no such program",
            id="a program that does not exist",
        ),
        pytest.param(
            [FAILED_WORKER, worker(1, containerStatuses=status(4))],
            "pi-worker-0 (and 1 more): container x failed with exit code 3",
            id="two workers",
        ),
        pytest.param(
            [worker(phase="Running", containerStatuses=CRASHED)],
            "pi-worker-0: container x failed with exit code 3",
            id="a program that waits for its next start",
        ),
        pytest.param(
            [FAILED_WORKER, worker(phase="Pending")],
            "pi-worker-0: container x failed with exit code 3",
            id="a worker whose replacement does not run yet",
        ),
        pytest.param([FAILED_WORKER, worker(phase="Running")], SILENT, id="a replaced worker"),
        pytest.param(
            [worker(phase="Running", containerStatuses=RUNNING)], SILENT, id="a restarted program"
        ),
        pytest.param([deleted(FAILED_WORKER)], SILENT, id="a worker that was deleted"),
        pytest.param(
            [worker(containerStatuses=status(3, finishedAt=LATEST))],
            SILENT,
            id="a worker that failed after the launcher",
        ),
        pytest.param(
            [worker(phase="Succeeded", containerStatuses=status(0))], SILENT, id="no failure"
        ),
    ],
)
def test_a_worker_that_failed_before_the_launcher_is_the_cause(workers, cause):
    job = decode_job({**mpijob("pi"), "status": {"conditions": [FAILED]}})
    pods = [*workers, launcher(containerStatuses=status(255, finishedAt=LATE))]
    assert outcome.end_of(job, pods, LastLines()).cause == cause
