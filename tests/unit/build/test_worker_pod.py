"""What holds for workers only. What they share with the launcher is in test_pod."""

import pytest

from mpi_operator.build.worker_pod import worker_pod, worker_pods
from tests.unit.build.jobs import (
    DOMAIN,
    NONE,
    environment,
    first_container,
    make_job,
    mounts,
    pods,
    volumes,
    without_workers,
)

INDEX = "training.kubeflow.org/replica-index"


@pytest.mark.parametrize(
    ("given", "command", "args"),
    [
        pytest.param({}, ["/usr/sbin/sshd", "-De"], None, id="sshd by default"),
        pytest.param(
            {"command": [], "args": []}, ["/usr/sbin/sshd", "-De"], [], id="empty lists say nothing"
        ),
        pytest.param({"command": ["a"]}, ["a"], None, id="the user's command"),
        pytest.param({"args": ["b"]}, None, ["b"], id="arguments for the image's own command"),
    ],
)
def test_what_a_worker_runs(given, command, args):
    container = first_container(worker_pod(make_job(worker=pods(**given)), 0, NONE)["spec"])
    assert container.get("command") == command
    assert container.get("args") == args


def test_a_worker_knows_its_role_and_nothing_of_the_hostfile():
    spec = worker_pod(make_job(), 0, NONE)["spec"]
    assert environment(spec) == {"K_MPI_JOB_ROLE": "worker"}
    assert set(volumes(spec)) == {"ssh-auth"}
    assert mounts(spec) == {"/root/.ssh": "ssh-auth"}


@pytest.mark.parametrize(
    ("given", "settings", "searches"),
    [
        pytest.param({}, NONE, ["pi.lab.svc.cluster.local"], id="the usual cluster domain"),
        pytest.param({}, DOMAIN, ["pi.lab.svc.example.org"], id="the cluster domain in use"),
        pytest.param(
            {"dnsConfig": {"searches": ["mine.org"]}},
            NONE,
            ["mine.org", "pi.lab.svc.cluster.local"],
            id="after the user's",
        ),
        pytest.param(
            {"dnsConfig": {"searches": ["pi.lab.svc.cluster.local", "mine.org"]}},
            NONE,
            ["pi.lab.svc.cluster.local", "mine.org"],
            id="not twice",
        ),
    ],
)
def test_bare_host_names_work_in_a_worker(given, settings, searches):
    spec = worker_pod(make_job(worker=pods(given)), 0, settings)["spec"]
    assert spec["dnsConfig"]["searches"] == searches


def test_the_rest_of_a_dns_config_is_kept():
    given = {"nameservers": ["192.0.2.1"], "options": [{"name": "ndots", "value": "2"}]}
    spec = worker_pod(make_job(worker=pods({"dnsConfig": given})), 0, NONE)["spec"]
    assert spec["dnsConfig"] == {**given, "searches": ["pi.lab.svc.cluster.local"]}


def test_workers_are_numbered_from_zero():
    found = worker_pods(make_job(), [0, 1, 12], NONE)
    assert [pod["metadata"]["name"] for pod in found] == [
        "pi-worker-0",
        "pi-worker-1",
        "pi-worker-12",
    ]
    assert [pod["spec"]["hostname"] for pod in found] == [pod["metadata"]["name"] for pod in found]
    assert [pod["metadata"]["labels"][INDEX] for pod in found] == ["0", "1", "12"]


def test_a_launcher_that_works_too_takes_the_first_index():
    pod = worker_pod(make_job(runLauncherAsWorker=True), 0, NONE)
    assert pod["metadata"]["name"] == "pi-worker-0"
    assert pod["metadata"]["labels"][INDEX] == "1"


def test_workers_never_restart_by_default():
    assert worker_pod(make_job(), 0, NONE)["spec"]["restartPolicy"] == "Never"


def test_one_worker_is_as_it_is_among_many():
    job = make_job(worker={"replicas": 20})
    assert worker_pods(job, range(20), NONE)[7] == worker_pod(job, 7, NONE)


def test_workers_share_what_is_equal():
    first, second = worker_pods(make_job(), [0, 1], NONE)
    assert first["spec"]["containers"] is second["spec"]["containers"]


def test_a_job_without_workers_has_no_worker_pods():
    assert worker_pods(without_workers(), [], NONE) == []
