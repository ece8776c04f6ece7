"""The custom resource definition `mpijobs.kubeflow.org`: what the API server knows about jobs.

It is small enough for plain `kubectl apply`, which keeps a copy in an annotation of at most 262,144
bytes. A further version of the API is a further row of `_versions`.
"""

from copy import deepcopy
from typing import Any

from . import schema, types

Column = dict[str, Any]


def _column(name: str, kind: str, path: str, description: str, *, wide: bool = False) -> Column:
    column = {"name": name, "type": kind, "jsonPath": path, "description": description}
    return column | ({"priority": 1} if wide else {})


# The last condition is the one that describes the job (`conditions` sees to that), and a column can
# only be a JSONPath.
_COLUMNS = [
    _column("State", "string", ".status.conditions[-1:].type", "What the job is doing."),
    _column(
        "Workers", "integer", ".spec.mpiReplicaSpecs.Worker.replicas", "How many workers it wants."
    ),
    _column(
        "Ready", "integer", ".status.replicaStatuses.Worker.active", "How many workers it has."
    ),
    _column("Age", "date", ".metadata.creationTimestamp", "How long ago it was created."),
    _column("MPI", "string", ".spec.mpiImplementation", "Which MPI it uses.", wide=True),
    _column(
        "Slots", "integer", ".spec.slotsPerWorker", "How many ranks a worker takes.", wide=True
    ),
    _column(
        "Reason", "string", ".status.conditions[-1:].reason", "Why it is in its state.", wide=True
    ),
    _column("Started", "date", ".status.startTime", "How long ago it was started.", wide=True),
    _column("Finished", "date", ".status.completionTime", "How long ago it finished.", wide=True),
]


def custom_resource_definition() -> types.Manifest:
    """The definition to install, to do with as one likes: nothing of it is shared."""
    return deepcopy(_definition())


def _definition() -> types.Manifest:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{types.PLURAL}.{types.GROUP}"},
        "spec": {
            "group": types.GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": types.KIND,
                "listKind": f"{types.KIND}List",
                "plural": types.PLURAL,
                "singular": "mpijob",
                "shortNames": ["mj", "mpij"],
                "categories": ["all"],
            },
            "versions": _versions(),
        },
    }


def _versions() -> list[types.Manifest]:
    return [
        {
            "name": types.VERSION,
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": schema.served_job()},
            "subresources": {"status": {}, "scale": _scale()},
            "additionalPrinterColumns": _COLUMNS,
        }
    ]


def _scale() -> types.Manifest:
    return {
        "specReplicasPath": ".spec.mpiReplicaSpecs.Worker.replicas",
        "statusReplicasPath": ".status.replicaStatuses.Worker.active",
        "labelSelectorPath": ".status.selector",
    }
