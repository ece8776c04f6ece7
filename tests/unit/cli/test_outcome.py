"""The end of a job that `mpijob` ran."""

import pytest

from mpi_operator.api import labels
from mpi_operator.api.decode import decode_job
from mpi_operator.cli import outcome
from mpi_operator.cli.launcher_failure import LastLines
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
            {"containerStatuses": status(127, reason="StartError")}, "", id="one that never ran"
        ),
        pytest.param({}, "", id="unknown"),
    ],
)
def test_a_launcher_that_printed_nothing_leaves_its_exit_code(statuses, cause):
    job = decode_job({**mpijob("pi"), "status": {"conditions": [FAILED]}})
    assert outcome.end_of(job, [launcher(**statuses)], LastLines()).cause == cause
