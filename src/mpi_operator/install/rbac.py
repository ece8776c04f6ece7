"""The operator's service account and RBAC rules.

The rules are data, each with its reason, and allow only the calls that the operator makes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .installation import NAME, Installation, Manifest, named

EXEC_NAME = f"{NAME}-exec-transport"
RBAC = "rbac.authorization.k8s.io"
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
        "list watch delete",
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
        "list watch",
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
        "To make the API server trust the conversion webhook.",
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "get watch patch",
        names=("mpijobs.kubeflow.org",),
    ),
    Rule(
        "To make the API server trust the admission webhooks.",
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


RULES = (*OPERATOR, *LOCK, *EXEC, *GANG, *CERTIFICATES, *TRUST, *EDIT, *VIEW)


def account(chosen: Installation) -> list[Manifest]:
    """The service account and its role for leader election, which every installation needs."""
    name = f"{NAME}-leader-election"
    return [
        named("v1", "ServiceAccount", NAME, chosen.namespace),
        _role("Role", name, LOCK, chosen.namespace),
        _binding(chosen, "RoleBinding", name, "Role", chosen.namespace),
    ]


def cluster(chosen: Installation) -> list[Manifest]:
    """The roles for an operator in all namespaces, and for its users."""
    return [
        *account(chosen),
        _role("ClusterRole", NAME, OPERATOR),
        _binding(chosen, "ClusterRoleBinding", NAME, "ClusterRole"),
        *users(),
    ]


def namespaced(chosen: Installation, namespace: str = "") -> list[Manifest]:
    """The role for an operator with --namespace, to be applied in each of the namespaces."""
    return [
        _role("Role", NAME, OPERATOR, namespace),
        _binding(chosen, "RoleBinding", NAME, "Role", namespace),
    ]


def gang_scheduling(chosen: Installation) -> list[Manifest]:
    """The additional role for --gang-scheduling. PriorityClasses are cluster-scoped."""
    name = f"{NAME}-gang-scheduling"
    return [
        _role("ClusterRole", name, GANG),
        _binding(chosen, "ClusterRoleBinding", name, "ClusterRole"),
    ]


def webhooks(chosen: Installation) -> list[Manifest]:
    """The additional roles for --webhooks=on, some of them for cluster-scoped objects."""
    name = f"{NAME}-webhooks"
    return [
        _role("Role", name, CERTIFICATES, chosen.namespace),
        _binding(chosen, "RoleBinding", name, "Role", chosen.namespace),
        _role("ClusterRole", name, TRUST),
        _binding(chosen, "ClusterRoleBinding", name, "ClusterRole"),
    ]


def exec_transport(chosen: Installation) -> list[Manifest]:
    """The additional role for jobs whose launcher reaches its workers by exec."""
    return [
        _role("ClusterRole", EXEC_NAME, EXEC),
        _binding(chosen, "ClusterRoleBinding", EXEC_NAME, "ClusterRole"),
    ]


def exec_transport_namespaced(chosen: Installation, namespace: str = "") -> list[Manifest]:
    """The same for an operator with --namespace."""
    return [
        _role("Role", EXEC_NAME, EXEC, namespace),
        _binding(chosen, "RoleBinding", EXEC_NAME, "Role", namespace),
    ]


def users() -> list[Manifest]:
    """Roles for users, with the names of the Go operator.

    Kubeflow's own roles include them, and so do the roles `admin`, `edit` and `view` of Kubernetes:
    users who may create Jobs in a namespace may create MPIJobs there.
    """
    mine = f"{AGGREGATE}-kubeflow-mpijobs-admin"
    # Without rules: the cluster fills them in, and applying the file again must not empty them.
    admin = named(f"{RBAC}/v1", "ClusterRole", "kubeflow-mpijobs-admin", "", _aggregated("admin"))
    admin["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {mine: "true"}}]}
    edit = _role(
        "ClusterRole",
        "kubeflow-mpijobs-edit",
        EDIT,
        labels=_aggregated("edit") | _in_kubernetes("edit", "admin") | {mine: "true"},
    )
    labels = _aggregated("view") | _in_kubernetes("view")
    view = _role("ClusterRole", "kubeflow-mpijobs-view", VIEW, labels=labels)
    return [admin, edit, view]


def _aggregated(role: str) -> Manifest:
    return {f"{AGGREGATE}-kubeflow-{role}": "true"}


def _in_kubernetes(*roles: str) -> Manifest:
    return {f"{RBAC}/aggregate-to-{role}": "true" for role in roles}


def _role(
    kind: str,
    name: str,
    rules: Sequence[Rule],
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
) -> Manifest:
    role = named(f"{RBAC}/v1", kind, name, namespace, labels)
    return role | {"rules": [rule.manifest for rule in rules]}


def _binding(
    chosen: Installation, kind: str, name: str, role: str, namespace: str = ""
) -> Manifest:
    return named(f"{RBAC}/v1", kind, name, namespace) | {
        "roleRef": {"apiGroup": RBAC, "kind": role, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": chosen.namespace}],
    }
