"""What pods can do: talk to each other, to services and to the API server, and be looked into."""

import pytest

from devcluster.endpoint import Endpoint
from tests.support.pods import SERVES_ITS_NAME, a_pod, a_service, await_ready, create, pod, shell
from tests.support.waiting import block_until

FETCH = "timeout 5 wget -q -O - http://"


@pytest.fixture
def couple(cluster, namespace):
    """Pods `left` and `right` on different nodes, in a headless service `pair`; the namespace."""
    pods = (
        a_pod(
            name,
            SERVES_ITS_NAME,
            node=node,
            labels={"app": "pair"},
            hostname=name,
            subdomain="pair",
        )
        for node, name in enumerate(("left", "right"))
    )
    create(cluster, namespace, a_service("pair", headless=True, app="pair"), *pods)
    await_ready(cluster, namespace, "left", "right")
    return namespace


def test_pods_that_ask_for_it_are_spread_over_both_nodes(cluster, namespace):
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "spread"}},
    }
    names = [f"spread-{number}" for number in range(4)]
    pods = (
        a_pod(name, "sleep 1000", labels={"app": "spread"}, topologySpreadConstraints=[spread])
        for name in names
    )
    create(cluster, namespace, *pods)
    await_ready(cluster, namespace, *names)
    nodes = [pod(cluster, namespace, name)["spec"]["nodeName"] for name in names]
    assert sorted(nodes) == ["node-0", "node-0", "node-1", "node-1"]


def test_pods_on_different_nodes_reach_each_other_by_address_and_by_name(cluster, couple):
    address = pod(cluster, couple, "right")["status"]["podIP"]
    assert shell(cluster, couple, "left", f"{FETCH}{address}:8080/name") == "right"
    assert shell(cluster, couple, "left", f"{FETCH}right.pair:8080/name") == "right"
    assert shell(cluster, couple, "right", f"{FETCH}left.pair:8080/name") == "left"
    full_name = f"left.pair.{couple}.svc.cluster.local"
    assert shell(cluster, couple, "left", "hostname -f") == full_name


def test_a_new_pod_resolves_at_once_even_after_an_early_query(cluster, couple):
    look_up = f"nslookup late.pair.{couple}.svc.cluster.local || true"
    assert "NXDOMAIN" in shell(cluster, couple, "left", look_up)
    late = a_pod("late", SERVES_ITS_NAME, labels={"app": "pair"}, hostname="late", subdomain="pair")
    create(cluster, couple, late)
    await_ready(cluster, couple, "late")
    assert shell(cluster, couple, "left", f"{FETCH}late.pair:8080/name") == "late"


def test_a_service_address_leads_to_pods_on_both_nodes(cluster, couple):
    create(cluster, couple, a_service("web", app="pair"))
    answers = set()

    def ask() -> bool:
        answers.add(shell(cluster, couple, "left", f"{FETCH}web/name || true"))
        return {"left", "right"} <= answers

    block_until(ask)


def test_the_api_server_reaches_pods_through_a_service(cluster, couple):
    create(cluster, couple, a_service("web", app="pair"))
    path = f"/api/v1/namespaces/{couple}/services/web:80/proxy/name"
    answers = set()

    def ask() -> bool:
        answers.add(cluster.endpoint().request("GET", path).body.decode().strip())
        return {"left", "right"} <= answers

    block_until(ask)


def test_a_pod_reaches_the_api_server_at_its_service_address(cluster, couple):
    ask = 'printf "GET / HTTP/1.0\\r\\n\\r\\n" | nc -w 5 kubernetes.default 443'
    assert "Client sent an HTTP request to an HTTPS server" in shell(cluster, couple, "left", ask)


def test_logs_can_be_read(cluster, namespace):
    create(cluster, namespace, a_pod("talker", "echo one; echo two >&2; sleep 1000"))
    await_ready(cluster, namespace, "talker")

    def both_are_there() -> bool:
        # They come through two pipes, so either may be first.
        log = cluster.kubectl("logs", "talker", "--namespace", namespace)
        return sorted(log.split()) == ["one", "two"]

    block_until(both_are_there)


def test_a_kubelet_serves_only_the_api_server(cluster):
    address, eve = cluster.nodes[0].address, cluster.endpoint("eve")
    stranger = Endpoint(address, 10250, cluster.ca)
    assert stranger.request("GET", "/pods").status == 401
    known = Endpoint(address, 10250, cluster.ca, eve.certificate, eve.key)
    assert known.request("GET", "/pods").status == 403


def test_an_image_is_imported_once(cluster, namespace, busybox):
    assert not any(node.load(busybox) for node in cluster.nodes)
