"""The container that is meant where none is named."""

import pytest

from mpi_operator.build.worker_pod import worker_pod
from mpi_operator.cli.job_output.job_stream import starts_of
from mpi_operator.local.default_container import default_container
from tests.support.observations import PLAIN, a_job

MAIN = "mpi-operator.kubeflow.org/main-container"
CONTAINERS = [{"name": "proxy", "image": "i"}, {"name": "mpi", "image": "i"}]


def pod(main):
    worker = {"replicas": 1, "template": {"spec": {"containers": CONTAINERS}}}
    return worker_pod(a_job(annotations={MAIN: main}, worker=worker), 0, PLAIN)


@pytest.mark.parametrize(
    ("main", "container"),
    [
        pytest.param("", "proxy", id="the first"),
        pytest.param("mpi", "mpi", id="the main one of the job"),
        pytest.param("gone", "proxy", id="the first, if the main one does not exist"),
    ],
)
def test_the_container_of_a_pod(main, container):
    assert default_container(pod(main)) == container


def test_an_annotation_that_names_no_container_counts_for_nothing():
    edited = pod("mpi")
    edited["metadata"]["annotations"] = {"kubectl.kubernetes.io/default-container": "gone"}
    assert default_container(edited) == "proxy"


@pytest.mark.parametrize(("main", "starts"), [("", 1), ("mpi", 3)])
def test_its_starts_are_those_of_the_pod(main, starts):
    statuses = [
        {"name": name, "restartCount": restarts, "state": {"running": {}}}
        for name, restarts in (("mpi", 2), ("proxy", 0))
    ]
    assert starts_of(pod(main) | {"status": {"containerStatuses": statuses}}) == {"": starts}
