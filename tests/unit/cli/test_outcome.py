"""The end of a job that `mpijob` ran."""

import pytest

from mpi_operator.api import labels
from mpi_operator.api.decode import decode_job
from mpi_operator.cli import outcome
from mpi_operator.cli.launcher_failure import LastLines
from tests.support.mpijobs import mpijob

JOB = decode_job(mpijob("pi"))


def status(code):
    return [{"name": "x", "state": {"terminated": {"exitCode": code}}}]


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
    marked = {"name": "pi-launcher-x", "labels": labels.launcher_labels(JOB)}
    pod = {"kind": "Pod", "metadata": marked, "status": statuses}
    assert outcome.end_of(JOB, [pod], LastLines()).exit_code == code
