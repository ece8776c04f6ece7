"""The operator's service account and RBAC rules, which `make generate` writes to `deploy/rbac/`.

The rules are data, each with its reason, and allow only the calls that the operator makes.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import yaml

Manifest: TypeAlias = dict[str, Any]

NAME = "mpi-operator"
NAMESPACE = "mpi-operator"
EXEC_NAME = f"{NAME}-exec-transport"
RBAC = "rbac.authorization.k8s.io"
LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/component": "mpijob"}
AGGREGATE = "rbac.authorization.kubeflow.org/aggregate-to"


@dataclass(frozen=True)
class Rule:
    """A policy rule and the reason for it."""

    why: str
    group: str
    resources: str
    verbs: str
    names: tuple[str, ...] = ()

    @property
    def manifest(self) -> Manifest:
        named = {"resourceNames": list(self.names)} if self.names else {}
        return {
            "apiGroups": [self.group],
            "resources": self.resources.split(),
            **named,
            "verbs": self.verbs.split(),
        }


# In every namespace with jobs.
OPERATOR = (
    Rule(
        "MPIJobs. The operator deletes one only if its author asked for that with a TTL.",
        "kubeflow.org",
        "mpijobs",
        "get list watch delete",
    ),
    Rule("To update the status of an MPIJob.", "kubeflow.org", "mpijobs/status", "update"),
    Rule(
        "For owner references with blockOwnerDeletion, where the cluster checks them (OpenShift).",
        "kubeflow.org",
        "mpijobs/finalizers",
        "update",
    ),
    Rule(
        "To run workers, and to read the state of the launcher's pod.",
        "",
        "pods",
        "create get list watch patch delete",
    ),
    Rule(
        "To read from the launcher's log which workers do not answer.",
        "",
        "pods/log",
        "get",
    ),
    Rule(
        "For the DNS names and the hostfile of a job.",
        "",
        "services configmaps",
        "create get list watch patch",
    ),
    Rule(
        "For the SSH keys of a job. Get shows who owns a Secret whose name is taken; the operator"
        " never lists or watches Secrets.",
        "",
        "secrets",
        "create get",
    ),
    Rule(
        "For the launcher. Update, because resuming it replaces its scheduling directives.",
        "batch",
        "jobs",
        "create get list watch update patch delete",
    ),
    Rule(
        "To reset the start time of a launcher that is resumed.", "batch", "jobs/status", "update"
    ),
    Rule("To record events.", "", "events", "create patch"),
)

# In the lock namespace.
LOCK = (
    Rule("For leader election.", "coordination.k8s.io", "leases", "create"),
    Rule(
        "For the one Lease of the operator. RBAC cannot restrict create by name.",
        "coordination.k8s.io",
        "leases",
        "get watch update",
        names=(NAME,),
    ),
)

# Only for jobs that reach their workers by exec. An operator can only grant what it may do itself.
EXEC = (
    Rule(
        "To grant launchers the exec into the workers of their own job. Exec over a WebSocket needs"
        " both verbs.",
        "",
        "pods/exec",
        "get create",
    ),
    Rule("For the account of a launcher.", "", "serviceaccounts", "create get"),
    Rule(
        "For the permission of a launcher, which names the workers, so it changes with them.",
        RBAC,
        "roles rolebindings",
        "create get patch",
    ),
)

# Only with --gang-scheduling.
GANG = (
    Rule(
        "For Volcano.", "scheduling.volcano.sh", "podgroups", "create get list watch patch delete"
    ),
    Rule(
        "For coscheduling.",
        "scheduling.x-k8s.io",
        "podgroups",
        "create get list watch patch delete",
    ),
    Rule(
        "To compute the minimum resources of a PodGroup, which depend on the pods' priorities.",
        "scheduling.k8s.io",
        "priorityclasses",
        "get list watch",
    ),
)

# Only with --webhooks=on, in the namespace of the operator.
CERTIFICATES = (
    Rule("For the certificate of the webhooks.", "", "secrets", "create"),
    Rule(
        "For the one Secret that has it. RBAC cannot restrict create by name.",
        "",
        "secrets",
        "get update",
        names=("mpi-operator-webhook",),
    ),
)
# Only with --webhooks=on. A watch is restricted to one name as well.
TRUST = (
    Rule(
        "To tell the API server which certificate converts MPIJobs.",
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "get watch patch",
        names=("mpijobs.kubeflow.org",),
    ),
    Rule(
        "To tell the API server which certificate admits MPIJobs.",
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations validatingwebhookconfigurations",
        "get watch patch",
        names=(NAME,),
    ),
)

EDIT = (
    Rule(
        "To create, change and delete MPIJobs.",
        "kubeflow.org",
        "mpijobs",
        "create get list watch update patch delete deletecollection",
    ),
    Rule("Only the operator writes the status.", "kubeflow.org", "mpijobs/status", "get"),
    Rule("For kubectl scale.", "kubeflow.org", "mpijobs/scale", "get update patch"),
)
VIEW = (Rule("To view MPIJobs.", "kubeflow.org", "mpijobs mpijobs/status", "get list watch"),)


def account() -> list[Manifest]:
    """The service account and its role for leader election, which every installation needs."""
    return [
        named("v1", "ServiceAccount", NAME, NAMESPACE),
        _role("Role", f"{NAME}-leader-election", LOCK, NAMESPACE),
        _binding("RoleBinding", f"{NAME}-leader-election", "Role", NAMESPACE),
    ]


def cluster() -> list[Manifest]:
    """The roles for an operator in all namespaces, and for its users."""
    return [
        *account(),
        _role("ClusterRole", NAME, OPERATOR),
        _binding("ClusterRoleBinding", NAME, "ClusterRole"),
        *users(),
    ]


def namespaced() -> list[Manifest]:
    """The role for an operator with --namespace, to be applied in each of the namespaces."""
    return [_role("Role", NAME, OPERATOR), _binding("RoleBinding", NAME, "Role")]


def gang_scheduling() -> list[Manifest]:
    """The additional role for --gang-scheduling. PriorityClasses are cluster-scoped."""
    name = f"{NAME}-gang-scheduling"
    return [
        _role("ClusterRole", name, GANG),
        _binding("ClusterRoleBinding", name, "ClusterRole"),
    ]


def webhooks() -> list[Manifest]:
    """The additional roles for --webhooks=on, some of them for cluster-scoped objects."""
    name = f"{NAME}-webhooks"
    return [
        _role("Role", name, CERTIFICATES, NAMESPACE),
        _binding("RoleBinding", name, "Role", NAMESPACE),
        _role("ClusterRole", name, TRUST),
        _binding("ClusterRoleBinding", name, "ClusterRole"),
    ]


def exec_transport() -> list[Manifest]:
    """The additional role for jobs whose launcher reaches its workers by exec."""
    return [
        _role("ClusterRole", EXEC_NAME, EXEC),
        _binding("ClusterRoleBinding", EXEC_NAME, "ClusterRole"),
    ]


def exec_transport_namespaced() -> list[Manifest]:
    """The same for an operator with --namespace."""
    return [_role("Role", EXEC_NAME, EXEC), _binding("RoleBinding", EXEC_NAME, "Role")]


def users() -> list[Manifest]:
    """Kubeflow's roles for users, with the names of the Go operator."""
    mine = f"{AGGREGATE}-kubeflow-mpijobs-admin"
    admin = _role("ClusterRole", "kubeflow-mpijobs-admin", (), labels=_aggregated("admin"))
    admin["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {mine: "true"}}]}
    edit = _role(
        "ClusterRole", "kubeflow-mpijobs-edit", EDIT, labels=_aggregated("edit") | {mine: "true"}
    )
    view = _role("ClusterRole", "kubeflow-mpijobs-view", VIEW, labels=_aggregated("view"))
    return [admin, edit, view]


def _aggregated(role: str) -> Manifest:
    return {f"{AGGREGATE}-kubeflow-{role}": "true"}


def named(
    version: str,
    kind: str,
    name: str,
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
) -> Manifest:
    """An object with only its type and metadata."""
    where = {"namespace": namespace} if namespace else {}
    metadata = {"name": name, **where, "labels": LABELS | dict(labels or {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def _role(
    kind: str,
    name: str,
    rules: Sequence[Rule],
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
) -> Manifest:
    role = named(f"{RBAC}/v1", kind, name, namespace, labels)
    return role | {"rules": [rule.manifest for rule in rules]}


def _binding(kind: str, name: str, role: str, namespace: str = "") -> Manifest:
    return named(f"{RBAC}/v1", kind, name, namespace) | {
        "roleRef": {"apiGroup": RBAC, "kind": role, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
    }


def written(objects: Iterable[Manifest], purpose: str) -> str:
    """A file for `kubectl apply -f`, with the reason for each rule."""
    header = f"# Made by `make generate`. Do not edit.\n# {purpose}\n"
    texts = (yaml.dump(each, Dumper=NoAliases, sort_keys=False, width=120) for each in objects)
    return header + "---\n".join(map(_with_reasons, texts))


def _with_reasons(text: str) -> str:
    """The YAML with a comment above each rule."""
    for rule in {*OPERATOR, *LOCK, *EXEC, *GANG, *CERTIFICATES, *TRUST, *EDIT, *VIEW}:
        block = yaml.dump([rule.manifest], Dumper=NoAliases, sort_keys=False)
        whole = re.escape(block) + "(?!  - )"  # and not the beginning of a rule with more verbs
        text = re.sub(f"(?={whole})", f"# {rule.why}\n", text)
    return text


class NoAliases(yaml.SafeDumper):
    """Repeats equal parts, because YAML aliases surprise people."""

    def ignore_aliases(self, data: object) -> bool:
        return True
