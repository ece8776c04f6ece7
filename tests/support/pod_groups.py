"""The PodGroups of Volcano and of scheduler-plugins: as much of their definitions as we write."""

from typing import Any

from mpi_operator.kube import errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Manifest, Resource
from tests.support.waiting import until

VOLCANO = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
SCHEDULER_PLUGINS = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")

_COUNT = {"type": "integer", "format": "int32"}
_TEXT = {"type": "string"}
_AMOUNTS = {
    "type": "object",
    "additionalProperties": {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
    },
}
_FIELDS: dict[Resource, dict[str, Any]] = {
    VOLCANO: {
        "minMember": _COUNT,
        "minResources": _AMOUNTS,
        # Volcano's own webhook fills this in, too.
        "queue": _TEXT | {"default": "default"},
        "priorityClassName": _TEXT,
    },
    SCHEDULER_PLUGINS: {
        "minMember": _COUNT,
        "minResources": _AMOUNTS,
        "scheduleTimeoutSeconds": _COUNT,
    },
}


async def install(client: HttpClient) -> None:
    """Make sure that the server has both kinds and serves them."""
    for resource in _FIELDS:
        wanted = definition(resource)
        await client.apply(CUSTOM_RESOURCE_DEFINITIONS, wanted, manager="tests", force=True)
    for resource in _FIELDS:
        await until(lambda resource=resource: _is_served(client, resource))  # type: ignore[misc]


def definition(resource: Resource) -> Manifest:
    """The definition of one of the kinds."""
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    spec = {"type": "object", "properties": _FIELDS[resource]}
    properties = {"spec": spec, "status": status}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{resource.plural}.{resource.group}",
            # An API group of Kubernetes, which requires a note about its approval.
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {"plural": resource.plural, "kind": resource.kind, "singular": "podgroup"},
            "versions": [
                {
                    "name": resource.version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


async def _is_served(client: HttpClient, resource: Resource) -> bool:
    try:
        await client.list(resource)
    except errors.NotFound:
        return False
    return True
