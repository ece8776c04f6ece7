"""The second scheduler starts the pods of a group together, or none of them."""

from typing import Any

import pytest

from devcluster.cluster import Cluster
from devcluster.scheduler_plugins import SCHEDULER_NAME
from tests.support.pods import a_pod, await_ready, create, pod
from tests.support.waiting import block_until

GROUP_LABEL = "scheduling.x-k8s.io/pod-group"


@pytest.fixture
def gang_cluster(cluster: Cluster) -> Cluster:
    cluster.start_scheduler_plugins()
    return cluster


def create_group(cluster: Cluster, namespace: str, name: str, members: int) -> None:
    group: dict[str, Any] = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": members, "scheduleTimeoutSeconds": 10},
    }
    path = f"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{namespace}/podgroups"
    assert cluster.endpoint().request("POST", path, group).status == 201


def phase(cluster: Cluster, namespace: str, name: str) -> Any:
    path = f"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{namespace}/podgroups/{name}"
    return cluster.endpoint().request("GET", path).json().get("status", {}).get("phase")


def member(name: str, group: str) -> dict[str, Any]:
    labels = {GROUP_LABEL: group}
    return a_pod(name, "sleep 1000", labels=labels, schedulerName=SCHEDULER_NAME)


def test_a_gang_starts_when_it_is_complete_and_not_before(gang_cluster, namespace):
    create_group(gang_cluster, namespace, "trio", 3)
    create(gang_cluster, namespace, member("one", "trio"), member("two", "trio"))

    def waits_for_others(name: str) -> bool:
        conditions = pod(gang_cluster, namespace, name)["status"].get("conditions", ())
        return any(
            "cannot find enough sibling pods" in each.get("message", "") for each in conditions
        )

    block_until(lambda: waits_for_others("one") and waits_for_others("two"))
    create(gang_cluster, namespace, member("three", "trio"))
    await_ready(gang_cluster, namespace, "one", "two", "three")
    block_until(lambda: phase(gang_cluster, namespace, "trio") == "Running")
