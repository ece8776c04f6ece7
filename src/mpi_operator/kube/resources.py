"""Kinds of objects, their paths in the API, and keys of objects.

A `Resource` is data (group, version, plural, kind), so the client has no code per kind. A
`Manifest` is an object as Kubernetes writes it, a plain dict: typed models would lose the fields
that they do not know.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote

Manifest: TypeAlias = dict[str, Any]


class Key(NamedTuple):
    """Identifies an object of a kind. The namespace of a cluster-scoped object is ""."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True)
class Resource:
    """A kind of object and its place in the API."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def collection_path(self, namespace: str | None) -> str:
        """The path to list and create objects; without a namespace, to list all namespaces."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if not self.namespaced or not namespace:
            return f"{root}/{self.plural}"
        return f"{root}/namespaces/{_segment(namespace)}/{self.plural}"

    def path(self, name: str, namespace: str | None, subresource: str | None = None) -> str:
        """The path of one object."""
        if self.namespaced and not namespace:
            raise ValueError(f"{self.plural} {name!r}: the namespace is missing")
        path = f"{self.collection_path(namespace)}/{_segment(name)}"
        return f"{path}/{subresource}" if subresource else path

    def key_of(self, manifest: Manifest) -> Key:
        """The namespace and name in a manifest; the name is "" where the server generates it."""
        metadata = manifest.get("metadata") or {}
        name: str = metadata.get("name") or ""
        if not self.namespaced:
            return Key("", name)
        namespace: str = metadata.get("namespace") or ""
        if not namespace:
            raise ValueError(f"{self.kind} {name!r}: metadata.namespace is missing")
        return Key(namespace, name)

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


def _segment(name: str) -> str:
    # A name from a job file must never lead to another object's path: "../secrets/x", "a?b", "".
    if name in ("", ".", ".."):
        raise ValueError(f"{name!r} cannot be the name of a Kubernetes object")
    return quote(name, safe=":")


PODS = Resource("", "v1", "pods", "Pod")
SERVICES = Resource("", "v1", "services", "Service")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
EVENTS = Resource("", "v1", "events", "Event")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLE_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
PERSISTENT_VOLUME_CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
PERSISTENT_VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
JOBS = Resource("batch", "v1", "jobs", "Job")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
CUSTOM_RESOURCE_DEFINITIONS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)
