"""CEL rules in the CRD: what the API server enforces beyond the schema.

`validation` has the same rules, and more, in Python. Tests check that the two agree.
"""

from typing import Any, TypeAlias

from . import types

Rule: TypeAlias = dict[str, Any]


def _containers_in(role: types.ReplicaType) -> Rule:
    template = f"self['{role}'].template"
    return {
        "rule": f"!('{role}' in self) || (has({template}) && has({template}.spec) "
        f"&& size({template}.spec.containers) > 0)",
        "message": "at least one container is required",
        "reason": "FieldValueRequired",
        "fieldPath": f".{role}.template.spec.containers",
    }


def _manager(spec: str) -> str:
    return (
        f"(has({spec}.runPolicy) && has({spec}.runPolicy.managedBy) "
        f"? {spec}.runPolicy.managedBy : '')"
    )


_WORKERS = (
    "('Worker' in self.spec.mpiReplicaSpecs && has(self.spec.mpiReplicaSpecs['Worker'].replicas) "
    "? self.spec.mpiReplicaSpecs['Worker'].replicas : 0)"
)

RULES: dict[type, list[Rule]] = {
    types.MPIJob: [
        {
            "rule": "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
            "message": "must consist of lower-case letters, digits and '-', start with a letter "
            "and not end with '-', because it becomes part of host names",
            "fieldPath": ".metadata.name",
        },
        {
            # 63 characters, less those of "-worker-".
            "rule": "size(self.metadata.name) "
            f"+ size(string({_WORKERS} > 0 ? {_WORKERS} - 1 : 0)) <= 55",
            "message": "too long: the name of a worker, '<name>-worker-<index>', may have at most "
            "63 characters",
            "fieldPath": ".metadata.name",
        },
    ],
    types.MPIJobSpec: [
        {
            "rule": "!('Worker' in self.mpiReplicaSpecs) "
            "|| !has(self.mpiReplicaSpecs['Worker'].replicas) "
            "|| self.mpiReplicaSpecs['Worker'].replicas > 0 "
            "|| (has(self.runLauncherAsWorker) && self.runLauncherAsWorker)",
            "message": "must be at least 1 unless runLauncherAsWorker is true",
            "fieldPath": ".mpiReplicaSpecs.Worker.replicas",
        },
        {
            "rule": f"{_manager('self')} == {_manager('oldSelf')}",
            "message": "field is immutable",
            "fieldPath": ".runPolicy.managedBy",
            "reason": "FieldValueForbidden",
        },
    ],
    types.ReplicaSpecs: [
        {
            "rule": "'Launcher' in self",
            "message": "a job needs a Launcher",
            "fieldPath": ".Launcher",
            "reason": "FieldValueRequired",
        },
        {
            "rule": "!('Launcher' in self) || !has(self['Launcher'].replicas) "
            "|| self['Launcher'].replicas == 1",
            "message": "must be 1",
            "fieldPath": ".Launcher.replicas",
        },
        _containers_in(types.ReplicaType.LAUNCHER),
        _containers_in(types.ReplicaType.WORKER),
    ],
}
