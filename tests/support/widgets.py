"""A kind of our own with the subresources status and scale, to try things on a real server."""

from mpi_operator.kube import errors
from mpi_operator.kube.client import Client
from mpi_operator.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Manifest, Resource
from tests.support.waiting import until

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")

_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

DEFINITION: Manifest = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": WIDGETS.group,
        "scope": "Namespaced",
        "names": {"plural": WIDGETS.plural, "kind": WIDGETS.kind, "shortNames": ["wd"]},
        "versions": [
            {
                "name": WIDGETS.version,
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": _OPEN, "status": _OPEN},
                    }
                },
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                    },
                },
            }
        ],
    },
}


async def install(client: Client) -> None:
    """Make sure that the server has the kind and serves it."""
    try:
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, DEFINITION)
    except errors.AlreadyExists:
        return
    await until(lambda: _is_served(client))


async def _is_served(client: Client) -> bool:
    try:
        await client.list(WIDGETS)
    except errors.NotFound:
        return False
    return True
