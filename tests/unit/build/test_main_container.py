"""Pods whose main container is not their first one."""

import json

import pytest

from mpi_operator.build.launcher_job import launcher_job
from mpi_operator.build.worker_pod import worker_pod
from tests.unit.build.jobs import NONE, make_job

MAIN = "mpi-operator.kubeflow.org/main-container"
DEFAULT = "kubectl.kubernetes.io/default-container"
PROXY, MPI = (
    {"name": "proxy", "image": "example.com/proxy:1"},
    {"name": "mpi", "image": "example.com/mpi:1"},
)


def a_job(name, *containers, **spec):
    template = {"spec": {"containers": list(containers), **spec}}
    roles = {"template": template}
    return make_job(annotations={MAIN: name}, launcher=roles, worker=roles)


def pods_of(job):
    launcher = launcher_job(job, NONE, suspend=False)["spec"]["template"]
    return {"launcher": launcher, "worker": worker_pod(job, 1, NONE)}


@pytest.mark.parametrize("role", ["launcher", "worker"])
def test_a_pod_with_the_main_container_last_is_that_with_it_first_in_another_order(role):
    one = pods_of(a_job("mpi", MPI, PROXY))[role]["spec"]
    other = pods_of(a_job("mpi", PROXY, MPI))[role]["spec"]
    assert other["containers"] == [*reversed(one["containers"])]
    assert other | {"containers": []} == one | {"containers": []}


@pytest.mark.parametrize("role", ["launcher", "worker"])
def test_the_other_containers_stay_as_they_are(role):
    assert pods_of(a_job("mpi", PROXY, MPI))[role]["spec"]["containers"][0] == PROXY


@pytest.mark.parametrize("role", ["launcher", "worker"])
def test_kubectl_knows_the_main_container(role):
    assert pods_of(a_job("mpi", PROXY, MPI))[role]["metadata"]["annotations"] == {DEFAULT: "mpi"}


def test_a_template_may_choose_another_log():
    job = a_job("mpi", PROXY, MPI)
    job.spec.launcher.template["metadata"] = {"annotations": {DEFAULT: "proxy"}}
    assert pods_of(job)["launcher"]["metadata"]["annotations"] == {DEFAULT: "proxy"}


@pytest.mark.parametrize("role", ["launcher", "worker"])
def test_a_name_that_no_container_has_changes_nothing(role):
    named, plain = (pods_of(a_job(name, PROXY, MPI))[role] for name in ("nobody", ""))
    assert json.dumps(named) == json.dumps(plain)


def test_on_the_network_of_its_node_the_main_container_of_a_worker_gets_the_port():
    proxy, mpi = worker_pod(a_job("mpi", PROXY, MPI, hostNetwork=True), 0, NONE)["spec"][
        "containers"
    ]
    assert proxy == PROXY
    assert len(mpi["ports"]) == 1


def test_a_mount_of_the_main_container_at_the_path_of_the_scripts_counts():
    taken = {**MPI, "volumeMounts": [{"name": "mine", "mountPath": "/etc/mpi"}]}
    for containers, is_used in (((PROXY, taken), False), ((PROXY, MPI), True)):
        pod = worker_pod(a_job("mpi", *containers), 0, NONE)
        assert ("mpi-job-environment" in str(pod["spec"]["volumes"])) == is_used
