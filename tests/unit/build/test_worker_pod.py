"""What holds for workers only. What they share with the launcher is in test_pod."""

from typing import Any

import pytest

from mpi_operator.build.worker_pod import worker_pod, worker_pods
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
    without_workers,
)

START = ["/bin/sh", "/etc/mpi/worker.sh"]
INDEX = "training.kubeflow.org/replica-index"


@pytest.mark.parametrize(
    ("given", "command", "args"),
    [
        pytest.param({}, [*START, "/usr/sbin/sshd", "-De"], None, id="sshd by default"),
        pytest.param(
            {"command": [], "args": []},
            [*START, "/usr/sbin/sshd", "-De"],
            [],
            id="empty lists mean not given",
        ),
        pytest.param(
            {"command": ["/opt/sbin/sshd"], "args": ["-D"]},
            [*START, "/opt/sbin/sshd"],
            ["-D"],
            id="the user's sshd",
        ),
        pytest.param(
            {"command": ["bash", "-c"], "args": ["a"]},
            [*START, "bash", "-c"],
            ["a"],
            id="the user's shell",
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
    assert mounts(spec) == {
        "/root/.ssh": "ssh-auth",
        "/etc/mpi": "mpi-job-config",
        "/run/mpi-operator": "mpi-job-environment",
    }
    items = volumes(spec)["mpi-job-config"]["configMap"]["items"]
    assert {item["key"]: item["mode"] for item in items} == {
        "remote_shell.sh": 0o555,
        "worker.sh": 0o555,
        "worker_ready.sh": 0o555,
    }


def test_without_ssh_a_worker_is_plain():
    spec = worker_pod(make_job(), 0, NO_SSH)["spec"]
    assert first_container(spec)["command"] == ["/usr/sbin/sshd", "-De"]
    assert mounts(spec) == {"/root/.ssh": "ssh-auth"}
    assert "startupProbe" not in first_container(spec)


READY = ["/bin/sh", "/etc/mpi/worker_ready.sh"]


@pytest.mark.parametrize(
    ("given", "command"),
    [
        pytest.param({}, [*READY, "-De"], id="our sshd"),
        pytest.param(
            {"command": ["/usr/sbin/sshd"], "args": ["-De", "-f", "/home/me/sshd_config"]},
            [*READY, "-De", "-f", "/home/me/sshd_config"],
            id="the user's sshd, wherever it listens",
        ),
        pytest.param({"command": ["sh", "-c", "sshd -D"]}, None, id="an unknown command"),
        pytest.param({"args": ["-D"]}, None, id="the command of the image"),
        pytest.param(
            {"readinessProbe": {"tcpSocket": {"port": 22}}}, None, id="the user's readiness probe"
        ),
        pytest.param(
            {"startupProbe": {"tcpSocket": {"port": 22}}}, None, id="the user's startup probe"
        ),
    ],
)
def test_a_worker_is_probed_until_sshd_listens(given, command):
    container = first_container(worker_pod(make_job(worker=pods(**given)), 0, NONE)["spec"])
    probe = container.get("startupProbe") or {}
    assert probe.get("exec", {}).get("command") == command
    assert container.get("readinessProbe") == given.get("readinessProbe")


@pytest.mark.parametrize(
    ("policy", "delay"),
    [
        pytest.param("AtStartup", 1, id="later: the node is busy with the launcher"),
        pytest.param("WaitForWorkersReady", None, id="at once: the launcher waits for it"),
    ],
)
@pytest.mark.parametrize("network", [{}, {"hostNetwork": True}])
def test_the_delay_of_the_first_probe(policy, delay, network):
    job = make_job(worker=pods(network), launcherCreationPolicy=policy)
    container = first_container(worker_pod(job, 0, NONE)["spec"])
    assert container["startupProbe"].get("initialDelaySeconds") == delay


HOST_NETWORK: dict[str, Any] = {"hostNetwork": True}


def ssh_port(pod):
    """The port in the arguments of sshd."""
    container = first_container(pod["spec"])
    words = [*container["command"], *container.get("args", ())]
    return int(words[words.index("-p") + 1]) if "-p" in words else None


def test_workers_on_the_network_of_their_nodes_have_their_own_ports():
    job = make_job(worker=pods(HOST_NETWORK) | {"replicas": 300})
    found = worker_pods(job, range(300), NONE)
    ports = [ssh_port(pod) for pod in found]
    assert len(set(ports)) == 300
    assert all(20000 <= port < 30000 for port in ports)
    for pod, port in zip(found, ports, strict=True):
        container = first_container(pod["spec"])
        assert container["ports"] == [{"containerPort": port, "hostPort": port, "protocol": "TCP"}]
        assert container["startupProbe"]["exec"]["command"][-2:] == ["-p", str(port)]
        assert environment(pod["spec"])["MPI_OPERATOR_FIRST_SSH_PORT"] == str(ports[0])


@pytest.mark.parametrize(
    ("worker", "launcher"),
    [
        pytest.param(pods(), {}, id="a network of its own"),
        pytest.param(pods(HOST_NETWORK, command=["sshd", "-p", "2222"]), {}, id="the user's port"),
        pytest.param(
            pods(HOST_NETWORK, command=["sshd", "-oPort=2222"]), {}, id="the user's port, otherwise"
        ),
        pytest.param(
            pods(HOST_NETWORK, command=["sshd"], args=["-o", "ListenAddress 0.0.0.0:7"]),
            {},
            id="the user's address",
        ),
        pytest.param(pods(HOST_NETWORK, command=["sh", "-c", "sshd"]), {}, id="a script"),
        pytest.param(
            pods(HOST_NETWORK),
            pods(env=[{"name": "OMPI_MCA_plm_rsh_agent", "value": "mine"}]),
            id="a remote shell that would not know the ports",
        ),
    ],
)
def test_the_operator_chooses_a_port_only_if_nothing_else_does(worker, launcher):
    pod = worker_pod(make_job(worker=worker, launcher=launcher), 0, NONE)
    assert "ports" not in first_container(pod["spec"])
    assert "MPI_OPERATOR_FIRST_SSH_PORT" not in environment(pod["spec"])


def test_ports_of_the_user_are_kept():
    given = {"containerPort": 80}
    pod = worker_pod(make_job(worker=pods(HOST_NETWORK, ports=[given])), 0, NONE)
    assert first_container(pod["spec"])["ports"][0] == given


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


def test_a_launcher_that_runs_ranks_takes_the_first_index():
    pod = worker_pod(make_job(runLauncherAsWorker=True), 0, NONE)
    assert pod["metadata"]["name"] == "pi-worker-0"
    assert pod["metadata"]["labels"][INDEX] == "1"


def test_workers_never_restart_by_default():
    assert worker_pod(make_job(), 0, NONE)["spec"]["restartPolicy"] == "Never"


def test_one_worker_is_the_same_as_among_many():
    job = make_job(worker={"replicas": 20})
    assert worker_pods(job, range(20), NONE)[7] == worker_pod(job, 7, NONE)


def test_workers_share_equal_parts():
    first, second = worker_pods(make_job(), [0, 1], NONE)
    assert first["spec"]["containers"] is second["spec"]["containers"]


def test_a_job_without_workers_has_no_worker_pods():
    assert worker_pods(without_workers(), [], NONE) == []
