"""Real pods for tests on a real cluster, and waiting for them."""

import json
from typing import Any

from devcluster.cluster import Cluster
from tests.support.waiting import block_until

BUSYBOX = "localhost/busybox:1"  # see the fixture of that name
# What Pod Security "restricted" asks for.
RESTRICTED: dict[str, Any] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
SERVES_ITS_NAME = "hostname > /tmp/name; exec httpd -f -p 8080 -h /tmp"


def a_pod(
    name: str,
    script: str,
    *,
    node: int | None = None,
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A pod that runs a shell script, on a node of our choice or of the scheduler's."""
    container = {"name": "main", "image": BUSYBOX, "command": ["sh", "-c", script]}
    if node is not None:
        spec["nodeName"] = f"node-{node}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


def a_service(name: str, *, headless: bool = False, **selector: str) -> dict[str, Any]:
    """A service in front of pods that listen on 8080."""
    spec: dict[str, Any] = {"selector": selector, "ports": [{"port": 80, "targetPort": 8080}]}
    if headless:
        spec |= {"clusterIP": "None", "publishNotReadyAddresses": True}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def create(cluster: Cluster, namespace: str, *objects: dict[str, Any]) -> None:
    """Create pods and services."""
    for each in objects:
        path = f"/api/v1/namespaces/{namespace}/{each['kind'].lower()}s"
        answer = cluster.endpoint().request("POST", path, each)
        assert answer.status == 201, answer.body


def pod(cluster: Cluster, namespace: str, name: str) -> Any:
    """A pod as the API server has it."""
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    return cluster.endpoint().request("GET", path).json()


def await_ready(cluster: Cluster, namespace: str, *names: str, seconds: float = 60) -> None:
    """Wait until pods are ready; the error has their status if they do not."""
    try:
        block_until(
            lambda: all(_is_ready(pod(cluster, namespace, name)) for name in names), seconds
        )
    except TimeoutError as error:
        found = {name: pod(cluster, namespace, name).get("status") for name in names}
        raise TimeoutError(json.dumps(found, indent=2)) from error


def shell(cluster: Cluster, namespace: str, name: str, script: str) -> str:
    """The output of a script in a running pod."""
    return cluster.kubectl("exec", name, "--namespace", namespace, "--", "sh", "-c", script).strip()


def _is_ready(found: Any) -> bool:
    conditions = found.get("status", {}).get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
