"""The CustomResourceDefinition `mpijobs.kubeflow.org`.

It is small enough for plain `kubectl apply`, which keeps a copy in an annotation of at most 262,144
bytes. A new version of the API is a new row in `_versions`.
"""

from copy import deepcopy
from typing import Any

from . import schema, types

Column = dict[str, Any]


def _column(name: str, kind: str, path: str, description: str, *, wide: bool = False) -> Column:
    column = {"name": name, "type": kind, "jsonPath": path, "description": description}
    return column | ({"priority": 1} if wide else {})


# `conditions` keeps the condition that describes the job last, because a column is a JSONPath.
_COLUMNS = [
    _column("State", "string", ".status.conditions[-1:].type", "State of the job."),
    _column(
        "Workers",
        "integer",
        ".spec.mpiReplicaSpecs.Worker.replicas",
        "Number of workers that the job asks for.",
    ),
    _column(
        "Ready",
        "integer",
        ".status.replicaStatuses.Worker.active",
        "Number of workers that are running.",
    ),
    _column("Age", "date", ".metadata.creationTimestamp", "Time since the job was created."),
    _column("MPI", "string", ".spec.mpiImplementation", "MPI implementation.", wide=True),
    _column("Slots", "integer", ".spec.slotsPerWorker", "Ranks per worker.", wide=True),
    _column(
        "Reason", "string", ".status.conditions[-1:].reason", "Reason for the state.", wide=True
    ),
    _column("Started", "date", ".status.startTime", "Time since the job started.", wide=True),
    _column(
        "Finished", "date", ".status.completionTime", "Time since the job finished.", wide=True
    ),
]


def custom_resource_definition() -> types.Manifest:
    """The CRD as a manifest that the caller may change."""
    return deepcopy(_crd())


def _crd() -> types.Manifest:
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
