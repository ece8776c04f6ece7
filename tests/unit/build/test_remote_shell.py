"""How launchers reach workers. Tests of the script itself are in tests/local."""

from typing import Any

import pytest

from mpi_operator.build import remote_shell, scripts
from mpi_operator.build.implementations import chooses_remote_shell
from mpi_operator.build.launcher_job import launcher_job
from mpi_operator.build.worker_pod import worker_pod
from tests.unit.build.jobs import NO_SSH, NONE, environment, first_container, make_job, mounts, pods

SCRIPT = "/etc/mpi/remote_shell.sh"


def launcher_spec(job, settings=NONE):
    return launcher_job(job, settings, suspend=False)["spec"]["template"]["spec"]


@pytest.mark.parametrize(
    ("implementation", "given", "expected"),
    [
        ("OpenMPI", [], {"OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent"}),
        ("OpenMPI", ["OMPI_MCA_plm_rsh_agent"], {"PRTE_MCA_plm_ssh_agent"}),
        ("OpenMPI", ["OMPI_MCA_orte_rsh_agent"], {"PRTE_MCA_plm_ssh_agent"}),
        ("OpenMPI", ["PRTE_MCA_plm"], {"OMPI_MCA_plm_rsh_agent"}),
        ("MPICH", [], {"HYDRA_LAUNCHER_EXEC"}),
        ("MPICH", ["HYDRA_LAUNCHER"], set()),
        ("MPICH", ["HYDRA_BOOTSTRAP"], set()),
        ("Intel", [], {"I_MPI_HYDRA_BOOTSTRAP_EXEC"}),
        ("Intel", ["I_MPI_HYDRA_BOOTSTRAP"], set()),
    ],
)
def test_a_launcher_uses_our_remote_shell_unless_the_user_chose_one(
    implementation, given, expected
):
    launcher = pods(env=[{"name": name, "value": "mine"} for name in given])
    variables = environment(
        launcher_spec(make_job(mpiImplementation=implementation, launcher=launcher))
    )
    assert {name for name, value in variables.items() if value == SCRIPT} == expected
    assert all(variables[name] == "mine" for name in given)


@pytest.mark.parametrize(
    ("implementation", "variable", "value", "is_ours"),
    [
        ("MPICH", "HYDRA_LAUNCHER", "ssh", True),
        ("MPICH", "HYDRA_LAUNCHER", "rsh", False),
        ("MPICH", "HYDRA_BOOTSTRAP", "ssh", True),
        ("Intel", "I_MPI_HYDRA_BOOTSTRAP", "ssh", True),
        ("Intel", "I_MPI_HYDRA_BOOTSTRAP", "slurm", False),
        ("OpenMPI", "OMPI_MCA_plm", "rsh", True),
        ("OpenMPI", "PRTE_MCA_plm", "ssh", True),
    ],
)
def test_a_choice_of_ssh_means_our_remote_shell(implementation, variable, value, is_ours):
    launcher = pods(env=[{"name": variable, "value": value}])
    job = make_job(mpiImplementation=implementation, launcher=launcher)
    assert chooses_remote_shell(job) != is_ours
    assert environment(launcher_spec(job))[variable] == value
    assert (SCRIPT in environment(launcher_spec(job)).values()) == is_ours


OWN = {"volumes": [{"name": "mine", "emptyDir": {}}]}


@pytest.mark.parametrize("path", ["/etc/mpi", "/etc/mpi/", "/etc/mpi/extra.conf"])
@pytest.mark.parametrize("role", ["launcher", "worker"])
def test_a_job_with_another_mount_at_its_path_uses_plain_ssh(role, path):
    taken = pods(OWN, volumeMounts=[{"name": "mine", "mountPath": path}])
    changes: dict[str, Any] = {role: taken}
    job = make_job(**changes)
    assert SCRIPT not in environment(launcher_spec(job)).values()
    worker = worker_pod(job, 0, NONE)["spec"]
    assert first_container(worker)["command"] == ["/usr/sbin/sshd", "-De"]
    assert "startupProbe" not in first_container(worker)
    assert "mpi-job-config" not in mounts(worker).values()


def test_a_mount_next_to_it_does_not_matter():
    mount = {"name": "mine", "mountPath": "/etc/mpich"}
    assert remote_shell.is_used(make_job(worker=pods(OWN, volumeMounts=[mount])), NONE)


def test_without_ssh_there_is_no_remote_shell():
    spec = launcher_spec(make_job(), NO_SSH)
    assert SCRIPT not in environment(spec).values()


@pytest.mark.parametrize(
    ("text", "seconds"), [("10m", "600"), ("45", "45"), ("never", None), ("", None)]
)
def test_both_roles_know_the_init_timeout(text, seconds):
    job = make_job(annotations={"mpi-operator.kubeflow.org/init-timeout": text})
    for spec in (launcher_spec(job), worker_pod(job, 0, NONE)["spec"]):
        assert environment(spec).get("MPI_OPERATOR_INIT_TIMEOUT") == seconds


UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "operator": "Exists"}


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        pytest.param([], None, id="none: the default"),
        pytest.param([UNREACHABLE | {"tolerationSeconds": 30}], "90", id="a limit"),
        pytest.param([UNREACHABLE | {"tolerationSeconds": -1}], "60", id="a negative limit"),
        pytest.param([UNREACHABLE | {"tolerationSeconds": 2**62}], "900", id="longer than TCP's"),
        pytest.param([UNREACHABLE | {"effect": "NoExecute"}], "900", id="no limit"),
        pytest.param([{"operator": "Exists"}], "900", id="no limit, for any taint"),
        pytest.param(
            [UNREACHABLE | {"tolerationSeconds": 90}, {"operator": "Exists"}],
            "150",
            id="the first of two",
        ),
        pytest.param(
            [{"operator": "Exists"}, UNREACHABLE | {"tolerationSeconds": 0}],
            "900",
            id="only the first of two",
        ),
        pytest.param(
            [{"key": "node.kubernetes.io/not-ready", "tolerationSeconds": 1}],
            None,
            id="another taint",
        ),
        pytest.param([UNREACHABLE | {"effect": "NoSchedule"}], None, id="another effect"),
        pytest.param(
            [{"key": "node.kubernetes.io/unreachable", "value": "x"}], None, id="another value"
        ),
    ],
)
def test_both_roles_know_the_ssh_keepalive(tolerations, seconds):
    job = make_job(worker=pods({"tolerations": tolerations}))
    for spec in (launcher_spec(job), worker_pod(job, 0, NONE)["spec"]):
        assert environment(spec).get("MPI_OPERATOR_NODE_TIMEOUT_SECONDS") == seconds


@pytest.mark.parametrize("name", scripts.NAMES)
def test_scripts_are_for_any_posix_shell(name):
    assert scripts.text(name).startswith("#!/bin/sh\n")
    assert "[[" not in scripts.text(name)


def test_caches_keep_one_copy_of_a_script():
    ours = scripts.text(scripts.WORKER)
    another = "".join(list(ours))
    assert another is not ours
    assert scripts.shared(another) is ours
    assert scripts.shared("something else") == "something else"


@pytest.mark.parametrize("event", scripts.Event)
def test_a_remote_shell_prints_the_events_that_the_operator_reads(event):
    assert f' "event={event} worker=$worker' in scripts.text(scripts.REMOTE_SHELL)
