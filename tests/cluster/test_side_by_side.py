"""Two clusters on one machine."""

import ipaddress

import pytest

from tests.support.pods import SERVES_ITS_NAME, a_pod, await_ready, create, pod, shell

pytestmark = pytest.mark.timeout(300)  # clusters of their own, on a machine that may be busy


def test_two_clusters_know_nothing_of_each_other_and_each_has_its_domain(
    cluster, namespace, start_cluster, busybox
):
    other = start_cluster(nodes=1, domain="other.example")
    other.load(busybox)
    assert other.network.range != cluster.network.range
    create(other, "default", a_pod("same", SERVES_ITS_NAME))
    create(cluster, namespace, a_pod("same", SERVES_ITS_NAME))
    await_ready(other, "default", "same")
    await_ready(cluster, namespace, "same")
    for where, inside in ((other, "default"), (cluster, namespace)):
        address = pod(where, inside, "same")["status"]["podIP"]
        assert ipaddress.ip_address(address) in ipaddress.ip_network(where.network.range)
        fetch = f"wget -q -O - http://{address}:8080/name"
        assert shell(where, inside, "same", fetch) == "same"
    found = shell(other, "default", "same", "nslookup kubernetes.default.svc.other.example")
    assert "10.96.0.1" in found
    assert "svc.other.example" in shell(other, "default", "same", "cat /etc/resolv.conf")
    other.kill_node(0)
    assert shell(cluster, namespace, "same", "echo alive") == "alive"
