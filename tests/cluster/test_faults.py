"""Nodes that lose their power, their network or their agent, and come back."""

import subprocess
from pathlib import Path

import pytest

from devcluster import components
from devcluster.cluster import Cluster, CommandFailed
from tests.support.pods import SERVES_ITS_NAME, a_pod, await_ready, create, pod, shell
from tests.support.waiting import block_until


def answers(cluster: Cluster, namespace: str, name: str) -> bool:
    try:
        return shell(cluster, namespace, name, "echo here") == "here"
    except CommandFailed:
        return False


def test_a_node_that_is_cut_off_is_noticed_and_comes_back_with_its_pods(cluster, namespace):
    create(cluster, namespace, a_pod("survivor", "sleep 1000", node=1))
    await_ready(cluster, namespace, "survivor")
    started = pod(cluster, namespace, "survivor")["status"]["containerStatuses"][0]["containerID"]
    cluster.cut_node(1)
    block_until(lambda: not cluster.is_ready(1), 60)
    assert cluster.is_ready(0)
    cluster.join_node(1)
    assert cluster.is_ready(1)
    await_ready(cluster, namespace, "survivor")
    statuses = pod(cluster, namespace, "survivor")["status"]["containerStatuses"]
    assert statuses[0]["containerID"] == started


def test_a_node_that_loses_its_power_starts_its_pods_anew(cluster, namespace):
    create(cluster, namespace, a_pod("phoenix", SERVES_ITS_NAME, node=1))
    await_ready(cluster, namespace, "phoenix")
    shell(cluster, namespace, "phoenix", "touch /tmp/before")
    cluster.kill_node(1)
    block_until(lambda: not cluster.is_ready(1), 60)
    cluster.start_node(1)

    def restarts() -> int:
        [status] = pod(cluster, namespace, "phoenix")["status"]["containerStatuses"]
        return int(status["restartCount"])

    block_until(lambda: restarts() == 1, 60)
    await_ready(cluster, namespace, "phoenix")
    assert shell(cluster, namespace, "phoenix", "ls /tmp") == "name"


def test_the_bridge_keeps_its_hardware_address_whichever_links_it_has(cluster):
    bridge = cluster.network.bridge
    before = hardware_address(bridge)
    lowest = f"{bridge}n99"
    ip(f"link add {lowest} address 02:00:00:00:00:01 type veth peer name {lowest}p")
    try:
        ip(f"link set {lowest} master {bridge}")
        assert hardware_address(bridge) == before
    finally:
        ip(f"link delete {lowest}")


def ip(arguments: str) -> None:
    subprocess.run(["ip", *arguments.split()], check=True)


def hardware_address(interface: str) -> str:
    return Path(f"/sys/class/net/{interface}/address").read_text()


def test_containers_outlive_the_agent_of_their_node(cluster, namespace):
    create(cluster, namespace, a_pod("calm", "sleep 1000", node=0))
    await_ready(cluster, namespace, "calm")
    cluster.stop_kubelet(0)
    cluster.start_kubelet(0)
    block_until(lambda: answers(cluster, namespace, "calm"))  # after the kubelet has synced
    [status] = pod(cluster, namespace, "calm")["status"]["containerStatuses"]
    assert status["restartCount"] == 0


def test_an_agent_that_ends_while_its_node_is_waited_for_is_started_again(cluster):
    cluster.cut_node(0)
    cluster.stop_kubelet(0)
    cluster.join_node(0)
    assert cluster.nodes[0].kubelet.is_alive
    block_until(lambda: cluster.is_ready(0), 60)  # after the kubelet has synced


@pytest.mark.parametrize(
    "break_it",
    [
        pytest.param(lambda cluster: cluster.kill_node(0), id="a dead node"),
        pytest.param(lambda cluster: cluster.cut_node(0), id="a cut link"),
        pytest.param(lambda cluster: cluster.stop_kubelet(1), id="a dead agent"),
        pytest.param(Cluster.kill_apiserver, id="a dead API server"),
        pytest.param(Cluster.pause_apiserver, id="a frozen API server"),
        pytest.param(lambda cluster: cluster.process("coredns").kill(), id="a dead DNS server"),
    ],
)
def test_mending_undoes_every_fault(cluster, namespace, break_it):
    break_it(cluster)
    cluster.mend()
    assert [cluster.is_ready(node) for node in (0, 1)] == [True, True]
    create(cluster, namespace, *(a_pod(f"pod-{node}", "sleep 1000", node=node) for node in (0, 1)))
    await_ready(cluster, namespace, "pod-0", "pod-1")
    look_up = "nslookup kubernetes.default.svc.cluster.local"
    assert components.SERVICE_ADDRESS in shell(cluster, namespace, "pod-0", look_up)
