"""What RBAC must allow before the parts of a cluster with nodes can talk to each other."""

from typing import Any

from devcluster import coredns, scheduler_plugins
from devcluster.endpoint import Endpoint

# How the API server introduces itself to kubelets, for logs and exec.
KUBELET_CLIENT = "kube-apiserver-kubelet-client"

_RBAC = "/apis/rbac.authorization.k8s.io/v1"


def grant(admin: Endpoint) -> None:
    """Create the roles and bindings that Kubernetes does not ship. Safe to call twice."""
    _grant_rules(admin, coredns.USER, coredns.RULES)
    _bind(admin, KUBELET_CLIENT, "system:kubelet-api-admin")


def grant_scheduler_plugins(admin: Endpoint) -> None:
    """Let the second scheduler do what the first may, and what it needs for gangs."""
    user = scheduler_plugins.USER
    _grant_rules(admin, user, scheduler_plugins.RULES)
    for role in ("system:kube-scheduler", "system:volume-scheduler"):
        _bind(admin, user, role)
    reader = _binding(user, "extension-apiserver-authentication-reader", kind="Role")
    create(admin, f"{_RBAC}/namespaces/kube-system/rolebindings", reader)


def create(admin: Endpoint, path: str, body: dict[str, Any]) -> None:
    """Create an object unless it is there."""
    answer = admin.request("POST", path, body)
    if answer.status not in (201, 409):
        raise RuntimeError(
            f"{body['metadata']['name']} cannot be created at {path}:"
            f" {answer.status} {answer.body.decode()}"
        )


def _grant_rules(admin: Endpoint, user: str, rules: list[dict[str, list[str]]]) -> None:
    create(admin, f"{_RBAC}/clusterroles", {"metadata": {"name": user}, "rules": rules})
    _bind(admin, user, user)


def _bind(admin: Endpoint, user: str, role: str) -> None:
    create(admin, f"{_RBAC}/clusterrolebindings", _binding(user, role))


def _binding(user: str, role: str, kind: str = "ClusterRole") -> dict[str, Any]:
    group = "rbac.authorization.k8s.io"
    return {
        "metadata": {"name": f"devcluster:{user}:{role}"},
        "roleRef": {"apiGroup": group, "kind": kind, "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }
