"""The kinds of installed objects, as a table: where each of them is in the API."""

from mpi_operator.kube.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    NAMESPACES,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    Manifest,
    Resource,
)

_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"


def _cluster_scoped(group: str, plural: str, kind: str) -> Resource:
    return Resource(group, "v1", plural, kind, namespaced=False)


_ALL = (
    NAMESPACES,
    CUSTOM_RESOURCE_DEFINITIONS,
    SERVICE_ACCOUNTS,
    ROLES,
    ROLE_BINDINGS,
    _cluster_scoped(_RBAC, "clusterroles", "ClusterRole"),
    _cluster_scoped(_RBAC, "clusterrolebindings", "ClusterRoleBinding"),
    DEPLOYMENTS,
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    SERVICES,
    _cluster_scoped(_ADMISSION, "mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
    _cluster_scoped(
        _ADMISSION, "validatingwebhookconfigurations", "ValidatingWebhookConfiguration"
    ),
)
_BY_KIND = {resource.kind: resource for resource in _ALL}


def resource_of(manifest: Manifest) -> Resource:
    """The resource of an object that `manifests` makes."""
    return _BY_KIND[manifest["kind"]]
