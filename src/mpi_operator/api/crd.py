"""The CustomResourceDefinition `mpijobs.kubeflow.org`.

It is small enough for plain `kubectl apply`, which keeps a copy in an annotation of at most 262,144
bytes. Jobs are stored as v2beta1; the operator's webhook converts them from and to older versions.
"""

from copy import deepcopy
from typing import Any

from . import schema, types
from .versions import OLD_VERSIONS
from .versions import schema as old_schemas

Column = dict[str, Any]

WEBHOOK_SERVICE = "mpi-operator-webhook"
WEBHOOK_NAMESPACE = "mpi-operator"
WEBHOOK_PORT = 443
CONVERSION_PATH = "/convert"


def _column(name: str, kind: str, path: str, description: str, *, wide: bool = False) -> Column:
    column = {"name": name, "type": kind, "jsonPath": path, "description": description}
    return column | ({"priority": 1} if wide else {})


# `conditions` keeps the condition that describes the job last, because a column is a JSONPath.
_STATE = _column("State", "string", ".status.conditions[-1:].type", "State of the job.")
_AGE = _column("Age", "date", ".metadata.creationTimestamp", "Time since the job was created.")
_WORKERS = _column(
    "Workers",
    "integer",
    ".spec.mpiReplicaSpecs.Worker.replicas",
    "Number of workers that the job asks for.",
)
_READY = _column(
    "Ready",
    "integer",
    ".status.replicaStatuses.Worker.active",
    "Number of workers that are running.",
)
_MPI = _column("MPI", "string", ".spec.mpiImplementation", "MPI implementation.", wide=True)
_WIDE = [
    _column("Slots", "integer", ".spec.slotsPerWorker", "Ranks per worker.", wide=True),
    _column(
        "Reason", "string", ".status.conditions[-1:].reason", "Reason for the state.", wide=True
    ),
    _column("Started", "date", ".status.startTime", "Time since the job started.", wide=True),
    _column(
        "Finished", "date", ".status.completionTime", "Time since the job finished.", wide=True
    ),
]
_COMMON = [_STATE, _WORKERS, _READY, _AGE]
# Older versions have no defaults, so a column without a value means the default.
_COLUMNS = {
    types.VERSION: [*_COMMON, _MPI, *_WIDE],
    "v1": [*_COMMON, _MPI, *_WIDE],
    "v1alpha2": [*_COMMON, _MPI | {"jsonPath": ".spec.mpiDistribution"}, *_WIDE],
    "v1alpha1": [
        _STATE,
        _WORKERS | {"jsonPath": ".spec.replicas"},
        _column("GPUs", "integer", ".spec.gpus", "Number of GPUs that the job asks for."),
        _column(
            "Units",
            "integer",
            ".spec.processingUnits",
            "Number of processing units that the job asks for.",
        ),
        _READY | {"jsonPath": ".status.workerReplicas"},
        _AGE,
        _column(
            "Launcher", "string", ".status.launcherStatus", "State of the launcher.", wide=True
        ),
        *_WIDE,
    ],
}
_DEPRECATED = ("v1alpha2", "v1alpha1")


def custom_resource_definition(namespace: str = WEBHOOK_NAMESPACE) -> types.Manifest:
    """The CRD with all versions, as a manifest that the caller may change.

    `namespace` is that of the operator. It has no CA for the webhook: the operator adds its own.
    """
    return deepcopy(_crd([types.VERSION, *OLD_VERSIONS], _webhook(namespace)))


def v2beta1_only() -> types.Manifest:
    """The CRD for an operator with --webhooks=off, as a manifest that the caller may change."""
    return deepcopy(_crd([types.VERSION], {"strategy": "None"}))


def _crd(versions: list[str], conversion: types.Manifest) -> types.Manifest:
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
            "conversion": conversion,
            "versions": [_version(each) for each in versions],
        },
    }


def _webhook(namespace: str) -> types.Manifest:
    service = {
        "namespace": namespace,
        "name": WEBHOOK_SERVICE,
        "path": CONVERSION_PATH,
        "port": WEBHOOK_PORT,
    }
    return {
        "strategy": "Webhook",
        "webhook": {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]},
    }


def _version(name: str) -> types.Manifest:
    return {
        "name": name,
        "served": True,
        "storage": name == types.VERSION,
        **_deprecation(name),
        "schema": {"openAPIV3Schema": _schema(name)},
        "subresources": {"status": {}, "scale": _scale(name)},
        "additionalPrinterColumns": _COLUMNS[name],
    }


def _schema(version: str) -> types.Manifest:
    return schema.served_job() if version == types.VERSION else old_schemas.served_job(version)


def _deprecation(version: str) -> types.Manifest:
    if version not in _DEPRECATED:
        return {}
    warning = (
        f"{types.GROUP}/{version} {types.KIND} is deprecated; use {types.API_VERSION} "
        f"(`mpijob convert --to {types.VERSION}` converts manifests)"
    )
    return {"deprecated": True, "deprecationWarning": warning}


def _scale(version: str) -> types.Manifest:
    """The workers, where the columns show them."""
    paths = {each["name"]: each["jsonPath"] for each in _COLUMNS[version]}
    return {
        "specReplicasPath": paths["Workers"],
        "statusReplicasPath": paths["Ready"],
        "labelSelectorPath": ".status.selector",
    }
