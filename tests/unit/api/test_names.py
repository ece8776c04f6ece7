"""The names and labels of a job's objects."""

import pytest

from mpi_operator.api import MPIJob, decode_job, labels, names
from mpi_operator.api.labels import Role
from tests.support.mpijobs import mpijob

PI = decode_job(mpijob("pi", "lab"))
BOTH = decode_job(mpijob("pi", "lab", runLauncherAsWorker=True))
LONGEST = decode_job(mpijob("a" * 54))


def test_names():
    assert names.service(PI) == "pi"
    assert names.config_map(PI) == "pi-config"
    assert names.ssh_secret(PI) == "pi-ssh"
    assert names.launcher(PI) == "pi-launcher"
    assert names.worker(PI, 3) == "pi-worker-3"
    assert names.pod_group(PI) == "pi"


@pytest.mark.parametrize(
    ("pod", "index"),
    [
        ("pi-worker-0", 0),
        ("pi-worker-12", 12),
        ("pi-worker-012", None),
        ("pi-worker-", None),
        ("pi-worker-²", None),
        ("pi-worker-1-x", None),
        ("pi-launcher-abcde", None),
        ("pie-worker-1", None),
        ("7", None),
    ],
)
def test_which_worker_a_pod_is(pod, index):
    assert names.worker_index(PI, pod) == index


def test_hosts_are_the_workers():
    assert names.hosts(PI) == ["pi-worker-0.pi.lab.svc", "pi-worker-1.pi.lab.svc"]


def test_a_launcher_that_is_a_worker_too_is_the_first_host():
    assert names.hosts(BOTH)[0] == "pi-launcher.pi.lab.svc"


def test_hosts_with_a_cluster_domain():
    assert names.hosts(PI, "example.org")[0] == "pi-worker-0.pi.lab.svc.example.org"


def test_a_search_domain_is_always_complete():
    assert names.search_domain(PI) == "pi.lab.svc.cluster.local"
    assert names.search_domain(PI, "example.org") == "pi.lab.svc.example.org"


def test_labels_of_a_worker():
    assert labels.worker_labels(PI, 1) == {
        "training.kubeflow.org/operator-name": "mpi-operator",
        "training.kubeflow.org/job-name": "pi",
        "training.kubeflow.org/job-role": "worker",
        "training.kubeflow.org/replica-type": "worker",
        "training.kubeflow.org/replica-index": "1",
        "group-name": "kubeflow.org",
        "mpi-job-name": "pi",
        "mpi-job-role": "worker",
        "mpi_job_name": "pi",
        "mpi_role_type": "worker",
    }


def test_labels_of_a_launcher():
    assert labels.launcher_labels(PI) == {
        "training.kubeflow.org/operator-name": "mpi-operator",
        "training.kubeflow.org/job-name": "pi",
        "training.kubeflow.org/job-role": "launcher",
        "training.kubeflow.org/replica-type": "launcher",
        "group-name": "kubeflow.org",
        "mpi-job-name": "pi",
        "mpi-job-role": "launcher",
        "mpi_job_name": "pi",
        "mpi_role_type": "launcher",
    }


def test_a_launcher_that_is_a_worker_too_has_index_0():
    assert labels.launcher_labels(BOTH)[labels.REPLICA_INDEX] == "0"
    assert labels.worker_labels(BOTH, 0)[labels.REPLICA_INDEX] == "1"


def test_labels_of_other_objects():
    assert labels.object_labels(PI) == {
        "app": "pi",
        "training.kubeflow.org/operator-name": "mpi-operator",
        "training.kubeflow.org/job-name": "pi",
    }


def test_a_selector_as_text():
    assert labels.as_selector(labels.role_selector(PI, Role.WORKER)) == (
        "training.kubeflow.org/operator-name=mpi-operator,"
        "training.kubeflow.org/job-name=pi,"
        "training.kubeflow.org/job-role=worker"
    )


@pytest.mark.parametrize("job", [PI, BOTH, LONGEST])
def test_selectors_find_what_they_are_for(job: MPIJob):
    assert labels.pod_selector(job).items() <= labels.launcher_labels(job).items()
    for role, found in (
        (Role.LAUNCHER, labels.launcher_labels(job)),
        (Role.WORKER, labels.worker_labels(job, 0)),
    ):
        assert labels.role_selector(job, role).items() <= found.items()


def test_labels_fit_even_for_the_longest_name():
    every = labels.worker_labels(LONGEST, 2**31) | labels.object_labels(LONGEST)
    assert max(map(len, every.values())) <= 63
