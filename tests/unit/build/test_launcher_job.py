"""What holds for the launcher only. What it shares with workers is in test_pod."""

import copy
from typing import Any

import pytest

from mpi_operator.api.types import Implementation
from mpi_operator.build.launcher_job import launcher_job, resumed
from mpi_operator.kube.resources import Manifest
from tests.unit.build.jobs import (
    NONE,
    PLUGINS,
    VOLCANO,
    environment,
    first_container,
    make_job,
    mounts,
    pods,
    volumes,
)


def pod_spec(**changes: Any) -> Manifest:
    job = launcher_job(make_job(**changes), NONE, suspend=False)
    spec: Manifest = job["spec"]["template"]["spec"]
    return spec


OPEN_MPI = {
    "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
    "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
    "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
    "OMPI_MCA_orte_set_default_slots": "5",
    "PRTE_MCA_prte_default_hostfile": "/etc/mpi/hostfile",
    "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
    "PRTE_MCA_prte_set_default_slots": "5",
    "PRTE_MCA_odls_base_max_threads": "0",
    "OMPI_MCA_plm_rsh_agent": "/etc/mpi/remote_shell.sh",
    "PRTE_MCA_plm_ssh_agent": "/etc/mpi/remote_shell.sh",
}
INTEL = {
    "I_MPI_HYDRA_HOST_FILE": "/etc/mpi/hostfile",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": "-o ConnectionAttempts=10",
    "I_MPI_PERHOST": "5",
    "I_MPI_HYDRA_BOOTSTRAP": "ssh",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC": "/etc/mpi/remote_shell.sh",
}
MPICH = {
    "HYDRA_HOST_FILE": "/etc/mpi/hostfile",
    "HYDRA_LAUNCH_EXTRA_ARGS": "-o ConnectionAttempts=10",
    "HYDRA_LAUNCHER": "ssh",
    "HYDRA_LAUNCHER_EXEC": "/etc/mpi/remote_shell.sh",
}
NO_GPUS = {"NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""}
ENVIRONMENTS = {"OpenMPI": OPEN_MPI, "Intel": INTEL, "MPICH": MPICH}


@pytest.mark.parametrize("implementation", Implementation)
def test_the_launcher_knows_the_hostfile(implementation):
    found = environment(pod_spec(mpiImplementation=implementation.value, slotsPerWorker=5))
    expected = {"K_MPI_JOB_ROLE": "launcher", **ENVIRONMENTS[implementation], **NO_GPUS}
    assert list(found.items()) == list(expected.items())


def test_a_launcher_that_runs_ranks_keeps_its_gpus():
    assert not NO_GPUS.keys() & environment(pod_spec(runLauncherAsWorker=True)).keys()


@pytest.mark.parametrize("name", ["NVIDIA_VISIBLE_DEVICES", "OMPI_MCA_plm_rsh_args"])
def test_the_user_may_set_our_variables(name):
    given = [{"name": name, "value": "mine"}]
    assert environment(pod_spec(launcher=pods(env=given)))[name] == "mine"


def test_the_launcher_runs_the_command_of_its_image_by_default():
    assert "command" not in first_container(pod_spec())
    spec = pod_spec(launcher=pods(command=["mpirun"], args=["pi"]))
    assert first_container(spec)["command"] == ["mpirun"]
    assert first_container(spec)["args"] == ["pi"]


def test_the_hosts_are_mounted_as_files():
    spec = pod_spec()
    assert list(volumes(spec)) == ["ssh-auth", "mpi-job-config"]
    assert volumes(spec)["mpi-job-config"]["configMap"] == {
        "name": "pi-config",
        "items": [
            {"key": "hostfile", "path": "hostfile", "mode": 0o444},
            {"key": "discover_hosts.sh", "path": "discover_hosts.sh", "mode": 0o555},
            {"key": "remote_shell.sh", "path": "remote_shell.sh", "mode": 0o555},
        ],
    }
    assert mounts(spec) == {"/root/.ssh": "ssh-auth", "/etc/mpi": "mpi-job-config"}


def test_the_launcher_has_a_fixed_host_name_and_no_search_domain():
    spec = pod_spec()
    assert spec["hostname"] == "pi-launcher"
    assert "dnsConfig" not in spec


@pytest.mark.parametrize(
    ("policy", "limits"),
    [
        pytest.param({}, {}, id="by default Kubernetes decides"),
        pytest.param(
            {"backoffLimit": 0, "activeDeadlineSeconds": 0},
            {"backoffLimit": 0, "activeDeadlineSeconds": 0},
            id="zero is a limit",
        ),
        pytest.param(
            {"backoffLimit": 3, "activeDeadlineSeconds": 60, "ttlSecondsAfterFinished": 5},
            {"backoffLimit": 3, "activeDeadlineSeconds": 60},
            id="the operator itself handles the TTL",
        ),
    ],
)
def test_limits_are_passed_on(policy, limits):
    spec = launcher_job(make_job(runPolicy=policy), NONE, suspend=False)["spec"]
    del spec["template"]
    assert spec == {"podReplacementPolicy": "Failed", **limits}


def test_a_suspended_launcher_says_so():
    assert launcher_job(make_job(), NONE, suspend=True)["spec"]["suspend"] is True
    assert "suspend" not in launcher_job(make_job(), NONE, suspend=False)["spec"]


@pytest.mark.parametrize(("works", "index"), [(True, "0"), (False, None)])
def test_only_a_launcher_that_runs_ranks_has_an_index(works, index):
    job = launcher_job(make_job(runLauncherAsWorker=works), NONE, suspend=False)
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert labels.get("training.kubeflow.org/replica-index") == index


def stored(**changes: Any) -> Manifest:
    """A suspended launcher as a server has it."""
    manifest = launcher_job(make_job(**changes), NONE, suspend=True)
    manifest["metadata"] |= {"resourceVersion": "7", "uid": "u"}
    manifest["spec"]["selector"] = {"matchLabels": {"controller-uid": "u"}}
    manifest["spec"]["template"]["metadata"]["labels"]["controller-uid"] = "u"
    return copy.deepcopy(manifest)


def admitted(**pod: Any) -> Manifest:
    """A launcher as Kueue admits it."""
    role = pods(pod)
    role["template"]["metadata"] = {"labels": {"flavour": "a"}, "annotations": {"podset": "b"}}
    return role


DIRECTIVES = {
    "nodeSelector": {"gpu": "a100"},
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "schedulingGates": [{"name": "example.com/topology"}],
}


def test_a_resumed_launcher_has_the_directives_of_the_current_template():
    job = make_job(launcher=admitted(**DIRECTIVES))
    template = resumed(stored(), job, NONE)["spec"]["template"]
    assert {name: template["spec"][name] for name in DIRECTIVES} == DIRECTIVES
    assert template["metadata"]["annotations"] == {"podset": "b"}
    assert template["metadata"]["labels"]["flavour"] == "a"


def test_a_resumed_launcher_drops_earlier_directives():
    before = stored(launcher=pods(DIRECTIVES))
    assert (
        not DIRECTIVES.keys() & resumed(before, make_job(), NONE)["spec"]["template"]["spec"].keys()
    )


def test_a_resumed_launcher_drops_labels_and_annotations_that_its_job_no_longer_has():
    after = resumed(stored(launcher=admitted()), make_job(), NONE)["spec"]["template"]["metadata"]
    assert after == stored()["spec"]["template"]["metadata"]


def test_a_resumed_launcher_has_other_labels_and_annotations_where_its_job_has():
    role = admitted()
    role["template"]["metadata"] = {"labels": {"flavour": "c"}, "annotations": {"podset": "d"}}
    after = resumed(stored(launcher=admitted()), make_job(launcher=role), NONE)
    metadata = after["spec"]["template"]["metadata"]
    assert metadata["labels"]["flavour"] == "c"
    assert metadata["annotations"] == {"podset": "d"}


JOB_CONTROLLER_LABELS = [
    "controller-uid",
    "job-name",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
]


@pytest.mark.parametrize("label", JOB_CONTROLLER_LABELS)
def test_a_resumed_launcher_keeps_the_labels_of_the_job_controller(label):
    before = stored(launcher=admitted())
    before["spec"]["template"]["metadata"]["labels"][label] = "x"
    after = resumed(before, make_job(), NONE)["spec"]["template"]["metadata"]
    assert after["labels"][label] == "x"


def test_a_resumed_launcher_loses_no_key_and_keeps_no_key_of_a_directive():
    before = stored(launcher=pods({"nodeSelector": {"zone": "1", "gpu": "t4"}}))
    after = resumed(before, make_job(launcher=admitted(**DIRECTIVES)), NONE)
    assert after["spec"]["template"]["spec"]["nodeSelector"] == {"gpu": "a100"}


def test_a_resumed_launcher_has_all_of_its_limits_again():
    """It may have been a retry, for which less of them was left."""
    limited = make_job(runPolicy={"backoffLimit": 4, "activeDeadlineSeconds": 100})
    left = {"backoffLimit": 1, "activeDeadlineSeconds": 7}
    before = stored()
    before["spec"] |= left
    assert left.keys() - resumed(before, make_job(), NONE)["spec"].keys() == left.keys()
    after = resumed(before, limited, NONE)["spec"]
    assert (after["backoffLimit"], after["activeDeadlineSeconds"]) == (4, 100)


def test_the_rest_of_a_resumed_launcher_is_as_stored():
    before = stored(launcher=pods(DIRECTIVES | {"priorityClassName": "low"}, image="old"))
    after = resumed(before, make_job(launcher=pods(image="new")), NONE)
    assert after["metadata"] == before["metadata"]
    assert after["spec"]["suspend"] is False
    kept = before["spec"]["template"]["spec"]
    expected = {name: value for name, value in kept.items() if name not in DIRECTIVES}
    assert after["spec"]["template"]["spec"] == expected
    assert after["spec"]["template"]["metadata"]["labels"]["controller-uid"] == "u"


@pytest.mark.parametrize("settings", [VOLCANO, PLUGINS])
def test_a_resumed_launcher_stays_in_its_gang(settings):
    job = make_job()
    before = launcher_job(job, settings, suspend=True)
    after = resumed(before, job, settings)
    assert after["spec"]["template"] == before["spec"]["template"]


def test_resuming_does_not_change_its_arguments():
    before = stored(launcher=pods(DIRECTIVES))
    untouched = copy.deepcopy(before)
    resumed(before, make_job(launcher=admitted(nodeSelector={"a": "b"})), NONE)
    assert before == untouched


def test_a_launcher_of_the_go_operator_without_annotations_can_be_resumed():
    before = stored()
    before["spec"]["template"]["metadata"] = None
    after = resumed(before, make_job(launcher=admitted()), NONE)
    assert after["spec"]["template"]["metadata"]["annotations"] == {"podset": "b"}
