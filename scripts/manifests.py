"""What has to be installed beside the CRD: who the operator is, and what it may do.

The rules are data, each with its reason, and no wider than the calls that the operator makes.
`make generate` writes them to `deploy/rbac/`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import yaml

Manifest: TypeAlias = dict[str, Any]

NAME = "mpi-operator"
NAMESPACE = "mpi-operator"
RBAC = "rbac.authorization.k8s.io"
LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/component": "mpijob"}
AGGREGATE = "rbac.authorization.kubeflow.org/aggregate-to"


@dataclass(frozen=True)
class Rule:
    """What may be done with some resources, and what for."""

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


# In every namespace whose jobs are looked after.
OPERATOR = (
    Rule(
        "The jobs. They are deleted only where somebody asked for that, by a time to live.",
        "kubeflow.org",
        "mpijobs",
        "get list watch delete",
    ),
    Rule("To say what happens to a job.", "kubeflow.org", "mpijobs/status", "update"),
    Rule(
        "To own what a job is made of, where the cluster asks for more than ownership by name"
        " (OpenShift).",
        "kubeflow.org",
        "mpijobs/finalizers",
        "update",
    ),
    Rule(
        "The workers; of the launcher, how it is.",
        "",
        "pods",
        "create get list watch patch delete",
    ),
    Rule(
        "What a launcher says about workers that do not answer: nobody else knows.",
        "",
        "pods/log",
        "get",
    ),
    Rule(
        "Through these the hosts of a job find each other, and their list.",
        "",
        "services configmaps",
        "create get list watch patch",
    ),
    Rule(
        "The key pair of a job. Read by name, to see whose it is where the name is taken;"
        " never listed or watched.",
        "",
        "secrets",
        "create get",
    ),
    Rule(
        "The launcher. Update, because resuming it replaces its scheduling directives.",
        "batch",
        "jobs",
        "create get list watch update patch delete",
    ),
    Rule(
        "To forget the start time of a launcher that is resumed.", "batch", "jobs/status", "update"
    ),
    Rule("To tell people.", "", "events", "create patch"),
)

# In the lock namespace.
LOCK = (
    Rule("To decide who leads.", "coordination.k8s.io", "leases", "create"),
    Rule(
        "The one Lease. A name cannot be asked for when creating.",
        "coordination.k8s.io",
        "leases",
        "get watch update",
        names=(NAME,),
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
        "How important the pods of a job are decides how much of it must fit.",
        "scheduling.k8s.io",
        "priorityclasses",
        "get list watch",
    ),
)

EDIT = (
    Rule(
        "All that one does with jobs.",
        "kubeflow.org",
        "mpijobs",
        "create get list watch update patch delete deletecollection",
    ),
    Rule("Their status is the operator's.", "kubeflow.org", "mpijobs/status", "get"),
    Rule("For kubectl scale.", "kubeflow.org", "mpijobs/scale", "get update patch"),
)
VIEW = (Rule("To look.", "kubeflow.org", "mpijobs mpijobs/status", "get list watch"),)


def account() -> list[Manifest]:
    """Who the operator is, and its Lease: needed however jobs are looked after."""
    return [
        named("v1", "ServiceAccount", NAME, NAMESPACE),
        _role("Role", f"{NAME}-leader-election", LOCK, NAMESPACE),
        _binding("RoleBinding", f"{NAME}-leader-election", "Role", NAMESPACE),
    ]


def cluster() -> list[Manifest]:
    """The operator for all namespaces, and roles for its users."""
    return [
        *account(),
        _role("ClusterRole", NAME, OPERATOR),
        _binding("ClusterRoleBinding", NAME, "ClusterRole"),
        *users(),
    ]


def namespaced() -> list[Manifest]:
    """For one namespace of those given with --namespace: to be applied in each of them."""
    return [_role("Role", NAME, OPERATOR), _binding("RoleBinding", NAME, "Role")]


def gang_scheduling() -> list[Manifest]:
    """What --gang-scheduling needs more. PriorityClasses have no namespace."""
    name = f"{NAME}-gang-scheduling"
    return [
        _role("ClusterRole", name, GANG),
        _binding("ClusterRoleBinding", name, "ClusterRole"),
    ]


def users() -> list[Manifest]:
    """Kubeflow's roles for people, by the names that they always had."""
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
    """The beginning of an object of ours."""
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
    """A file for `kubectl apply -f`, with the reason of each rule beside it."""
    header = f"# Made by `make generate`. Do not edit.\n# {purpose}\n"
    texts = (yaml.dump(each, Dumper=NoAliases, sort_keys=False, width=120) for each in objects)
    return header + "---\n".join(map(_with_reasons, texts))


def _with_reasons(text: str) -> str:
    """The YAML with a comment above each rule."""
    for rule in {*OPERATOR, *LOCK, *GANG, *EDIT, *VIEW}:
        block = yaml.dump([rule.manifest], Dumper=NoAliases, sort_keys=False)
        text = text.replace(block, f"# {rule.why}\n{block}")
    return text


class NoAliases(yaml.SafeDumper):
    """Equal parts are written out: aliases are legal YAML, and still surprise people."""

    def ignore_aliases(self, data: object) -> bool:
        return True
