"""How launchers are told to start their daemons. What the script does is in tests/local."""

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
def test_who_asks_for_ssh_gets_ssh_that_waits(implementation, variable, value, is_ours):
    launcher = pods(env=[{"name": variable, "value": value}])
    job = make_job(mpiImplementation=implementation, launcher=launcher)
    assert chooses_remote_shell(job) != is_ours
    assert environment(launcher_spec(job))[variable] == value
    assert (SCRIPT in environment(launcher_spec(job)).values()) == is_ours


OWN = {"volumes": [{"name": "mine", "emptyDir": {}}]}


@pytest.mark.parametrize("path", ["/etc/mpi", "/etc/mpi/", "/etc/mpi/extra.conf"])
@pytest.mark.parametrize("role", ["launcher", "worker"])
def test_where_its_place_is_taken_a_job_is_left_to_plain_ssh(role, path):
    taken = pods(OWN, volumeMounts=[{"name": "mine", "mountPath": path}])
    changes: dict[str, Any] = {role: taken}
    job = make_job(**changes)
    assert SCRIPT not in environment(launcher_spec(job)).values()
    worker = worker_pod(job, 0, NONE)["spec"]
    assert first_container(worker)["command"] == ["/usr/sbin/sshd", "-De"]
    assert "startupProbe" not in first_container(worker)
    assert "mpi-job-config" not in mounts(worker).values()


def test_a_mount_beside_it_is_in_nobodys_way():
    mount = {"name": "mine", "mountPath": "/etc/mpich"}
    assert remote_shell.is_used(make_job(worker=pods(OWN, volumeMounts=[mount])), NONE)


def test_where_nobody_uses_ssh_there_is_no_remote_shell():
    spec = launcher_spec(make_job(), NO_SSH)
    assert SCRIPT not in environment(spec).values()


@pytest.mark.parametrize(
    ("text", "seconds"), [("10m", "600"), ("45", "45"), ("never", None), ("", None)]
)
def test_both_roles_know_how_long_a_start_may_take(text, seconds):
    job = make_job(annotations={"mpi-operator.kubeflow.org/init-timeout": text})
    for spec in (launcher_spec(job), worker_pod(job, 0, NONE)["spec"]):
        assert environment(spec).get("MPI_OPERATOR_INIT_TIMEOUT") == seconds


UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "operator": "Exists"}


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        pytest.param([], None, id="which is the cluster's"),
        pytest.param([UNREACHABLE | {"tolerationSeconds": 30}], "90", id="given"),
        pytest.param([UNREACHABLE | {"tolerationSeconds": -1}], "60", id="none"),
        pytest.param([UNREACHABLE | {"tolerationSeconds": 2**62}], "900", id="longer than TCP's"),
        pytest.param([UNREACHABLE | {"effect": "NoExecute"}], "900", id="without end"),
        pytest.param([{"operator": "Exists"}], "900", id="without end, for any taint"),
        pytest.param(
            [UNREACHABLE | {"tolerationSeconds": 90}, {"operator": "Exists"}],
            "150",
            id="the first that is given",
        ),
        pytest.param(
            [{"operator": "Exists"}, UNREACHABLE | {"tolerationSeconds": 0}],
            "900",
            id="the first, and no other",
        ),
        pytest.param(
            [{"key": "node.kubernetes.io/not-ready", "tolerationSeconds": 1}], None, id="of others"
        ),
        pytest.param(
            [UNREACHABLE | {"effect": "NoSchedule"}], None, id="of others, before they are there"
        ),
        pytest.param(
            [{"key": "node.kubernetes.io/unreachable", "value": "x"}], None, id="of another value"
        ),
    ],
)
def test_both_roles_know_the_patience_of_workers_with_nodes(tolerations, seconds):
    job = make_job(worker=pods({"tolerations": tolerations}))
    for spec in (launcher_spec(job), worker_pod(job, 0, NONE)["spec"]):
        assert environment(spec).get("MPI_OPERATOR_NODE_PATIENCE") == seconds


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


@pytest.mark.parametrize("beginning", [scripts.GAVE_UP, scripts.LOST, scripts.WENT_ON])
def test_the_last_words_of_a_remote_shell_are_recognised(beginning):
    said = beginning.removeprefix("mpi-operator: ")
    assert f'leave_word "{said}$worker' in scripts.text(scripts.REMOTE_SHELL)
