"""Jobs whose launcher reaches its workers by exec."""

import pytest

from mpi_operator.build import scripts
from mpi_operator.build.config_map import config_map
from mpi_operator.build.exec_shell import SCRIPT_PATH
from mpi_operator.build.launcher_job import launcher_job
from mpi_operator.build.role import role
from mpi_operator.build.role_binding import role_binding
from mpi_operator.build.settings import Settings
from mpi_operator.build.volumes import ADDED_NAMES
from mpi_operator.build.worker_pod import worker_pod
from tests.unit.build.jobs import (
    DOMAIN,
    NO_SSH,
    NONE,
    environment,
    first_container,
    make_job,
    mounts,
    pods,
    volumes,
)

EXEC = {"mpi-operator.kubeflow.org/transport": "exec"}
V1 = {"mpi-operator.kubeflow.org/written-in": "v1"}
MAIN = {"mpi-operator.kubeflow.org/main-container": "mpi"}
TWO = {
    "template": {
        "spec": {
            "containers": [
                {"name": "proxy", "image": "example.com/proxy:1"},
                {"name": "mpi", "image": "example.com/mpi:1"},
            ]
        }
    }
}


def exec_job(**changes):
    return make_job(annotations=EXEC, **changes)


def launcher_pod(job, settings=NONE):
    return launcher_job(job, settings, suspend=False)["spec"]["template"]["spec"]


def delivery(pod):
    return next((c for c in pod.get("initContainers", ()) if c["name"] == "kubectl-delivery"), None)


@pytest.mark.parametrize(
    ("changes", "settings", "hostfile"),
    [
        pytest.param({}, NONE, "pi-worker-0 slots=1\npi-worker-1 slots=1\n", id="Open MPI"),
        pytest.param({}, DOMAIN, "pi-worker-0 slots=1\npi-worker-1 slots=1\n", id="any domain"),
        pytest.param(
            {"mpiImplementation": "MPICH", "slotsPerWorker": 3},
            NONE,
            "pi-worker-0:3\npi-worker-1:3\n",
            id="MPICH",
        ),
        pytest.param(
            {"runLauncherAsWorker": True},
            NONE,
            "pi-launcher slots=1\npi-worker-0 slots=1\npi-worker-1 slots=1\n",
            id="a launcher that works, too",
        ),
    ],
)
def test_hosts_are_pods(changes, settings, hostfile):
    data = config_map(exec_job(**changes), [1], settings)["data"]
    assert data["hostfile"] == hostfile
    assert data["discover_hosts.sh"].splitlines()[-1].startswith("echo pi-worker-1:")


@pytest.mark.parametrize("implementation", ["OpenMPI", "Intel", "MPICH"])
def test_each_mpi_starts_its_daemons_with_the_script(implementation):
    variables = environment(launcher_pod(exec_job(mpiImplementation=implementation)))
    assert variables["OMPI_MCA_plm_rsh_agent"] == "/etc/mpi/kubexec.sh"  # Horovod looks for it
    assert variables["PRTE_MCA_plm_ssh_agent"] == SCRIPT_PATH
    assert variables["I_MPI_HYDRA_BOOTSTRAP"] == "rsh"
    assert variables["I_MPI_HYDRA_BOOTSTRAP_EXEC"] == SCRIPT_PATH
    assert variables["HYDRA_LAUNCHER_EXEC"] == SCRIPT_PATH
    assert "ConnectionAttempts" not in str(variables)


def test_the_user_chooses_another_agent():
    own = [{"name": "OMPI_MCA_plm_rsh_agent", "value": "/mine"}]
    variables = environment(launcher_pod(exec_job(launcher=pods(env=own))))
    assert variables["OMPI_MCA_plm_rsh_agent"] == "/mine"
    assert variables["PRTE_MCA_plm_ssh_agent"] == SCRIPT_PATH


@pytest.mark.parametrize(
    ("given", "command", "args"),
    [
        pytest.param(
            {}, ["/bin/sh", "/etc/mpi/idle.sh", "sleep"], ["365d"], id="nothing: it waits"
        ),
        pytest.param({"command": ["/run.sh"]}, ["/run.sh"], None, id="a command stays"),
        pytest.param({"args": ["serve"]}, None, ["serve"], id="arguments stay"),
    ],
)
def test_what_a_worker_runs(given, command, args):
    container = first_container(worker_pod(exec_job(worker=pods(**given)), 0, NONE)["spec"])
    assert (container.get("command"), container.get("args")) == (command, args)
    assert "startupProbe" not in container


def test_a_worker_has_no_keys():
    spec = worker_pod(exec_job(), 0, NONE)["spec"]
    assert list(volumes(spec)) == ["mpi-job-config"]
    items = volumes(spec)["mpi-job-config"]["configMap"]["items"]
    assert {each["key"]: each["mode"] for each in items} == {"kubexec.sh": 0o555, "idle.sh": 0o555}


def test_the_launcher_has_the_client_and_no_keys():
    spec = launcher_pod(exec_job(), Settings(kubectl_delivery_image="example.com/delivery:2"))
    assert mounts(spec) == {"/opt/kube": "mpi-job-kubectl", "/etc/mpi": "mpi-job-config"}
    found = delivery(spec)
    assert found["image"] == "example.com/delivery:2"
    assert {each["name"]: each["value"] for each in found["env"]} == {
        "TARGET_DIR": "/opt/kube",
        "NAMESPACE": "lab",
    }
    assert found["volumeMounts"] == [{"name": "mpi-job-kubectl", "mountPath": "/opt/kube"}]


@pytest.mark.parametrize(
    ("pod", "container", "volume"),
    [
        pytest.param(
            {"volumes": [{"name": "mpi-job-kubectl", "emptyDir": {}}]},
            {},
            "mpi-job-kubectl-2",
            id="the name of our volume is taken",
        ),
        pytest.param(
            {"volumes": [{"name": "tools", "emptyDir": {}}]},
            {"volumeMounts": [{"name": "tools", "mountPath": "/opt/kube/"}]},
            "tools",
            id="the path is taken",
        ),
    ],
)
def test_the_client_is_where_the_launcher_expects_it(pod, container, volume):
    spec = launcher_pod(exec_job(launcher=pods(pod, **container)))
    assert delivery(spec)["volumeMounts"][0]["name"] == volume


def test_a_delivery_of_the_template_is_left_alone():
    own = {"name": "kubectl-delivery", "image": "example.com/own:1"}
    spec = launcher_pod(exec_job(launcher=pods({"initContainers": [own]})))
    assert spec["initContainers"] == [own]


def test_the_client_is_delivered_as_the_user_of_the_launcher():
    user = {"runAsUser": 1000, "runAsNonRoot": True, "privileged": True}
    security = delivery(launcher_pod(exec_job(launcher=pods(securityContext=user))))[
        "securityContext"
    ]
    assert (security["runAsUser"], security["runAsNonRoot"]) == (1000, True)
    assert "privileged" not in security


@pytest.mark.parametrize(
    ("pod", "account"),
    [
        pytest.param({}, "pi-launcher", id="its own"),
        pytest.param({"serviceAccountName": "mine"}, "mine", id="that of the template"),
        pytest.param({"serviceAccount": "mine"}, "mine", id="by the field's older name"),
    ],
)
def test_the_account_of_the_launcher_has_the_role(pod, account):
    job = exec_job(launcher=pods(pod))
    spec = launcher_pod(job)
    assert spec["serviceAccountName"] == account
    assert "serviceAccount" not in spec
    assert [each["name"] for each in role_binding(job)["subjects"]] == [account]


def test_a_launcher_gets_its_token_whatever_the_template_says():
    spec = launcher_pod(exec_job(launcher=pods({"automountServiceAccountToken": False})))
    assert spec["automountServiceAccountToken"] is True


@pytest.mark.parametrize(
    ("workers", "names"),
    [(1, [["pi-worker-0"]]), (2, [["pi-worker-0", "pi-worker-1"]]), (0, [])],
)
def test_the_role_names_the_workers(workers, names):
    job = exec_job(worker={"replicas": workers}, runLauncherAsWorker=True)
    assert [rule["resourceNames"] for rule in role(job)["rules"]] == names


def test_the_script_names_the_main_container():
    job = make_job(annotations=EXEC | MAIN, worker={**TWO, "replicas": 1})
    text = config_map(job, [], NONE)["data"][scripts.KUBEXEC]
    assert "remote-shell --container mpi -- " in text


def test_bare_names_resolve_in_the_launcher():
    assert launcher_pod(exec_job(), DOMAIN)["dnsConfig"] == {"searches": ["pi.lab.svc.example.org"]}


def test_on_one_machine_nothing_is_delivered_or_permitted():
    spec = launcher_pod(exec_job(), NO_SSH)
    assert "serviceAccountName" not in spec
    assert delivery(spec) is None
    worker = first_container(worker_pod(exec_job(), 0, NO_SSH)["spec"])
    assert (worker["command"], worker["args"]) == (["sleep"], ["365d"])


def test_v1_uses_exec_and_its_ssh_twin_is_as_v2beta1():
    by_exec = launcher_pod(make_job(annotations=V1))
    assert by_exec["serviceAccountName"] == "pi-launcher"
    ssh = {"mpi-operator.kubeflow.org/transport": "ssh"}
    assert launcher_pod(make_job(annotations=ssh)) == launcher_pod(make_job())


def test_the_names_of_all_volumes_that_are_added_are_known():
    jobs = (make_job(), exec_job())
    specs = [spec for job in jobs for spec in (launcher_pod(job), worker_pod(job, 0, NONE)["spec"])]
    assert {name for spec in specs for name in volumes(spec)} == ADDED_NAMES
