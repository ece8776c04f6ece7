"""CEL rules in the CRD: what the API server enforces beyond the schema.

`validation` has the same rules, and more, in Python. Tests check that the two agree. The rules of
older versions, made from these, are in `versions.cel`.
"""

from typing import Any, TypeAlias

from . import types

Rule: TypeAlias = dict[str, Any]

_WORKER = "self.mpiReplicaSpecs['Worker']"


def containers(holder: str, path: str) -> Rule:
    """The rule that a template has containers, given the object that has the template."""
    template = f"{holder}.template"
    return {
        "rule": f"has({template}) && has({template}.spec) && size({template}.spec.containers) > 0",
        "message": "at least one container is required",
        "reason": "FieldValueRequired",
        "fieldPath": f"{path}.template.spec.containers",
    }


def _containers_in(role: types.ReplicaType) -> Rule:
    rule = containers(f"self['{role}']", f".{role}")
    return rule | {"rule": f"!('{role}' in self) || ({rule['rule']})"}


def _manager(spec: str) -> str:
    return (
        f"(has({spec}.runPolicy) && has({spec}.runPolicy.managedBy) "
        f"? {spec}.runPolicy.managedBy : '')"
    )


def name_rules(workers: str) -> list[Rule]:
    """The rules for a job's name, given the expression for the number of its workers."""
    return [
        {
            "rule": "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
            "message": "must consist of lower-case letters, digits and '-', start with a letter "
            "and not end with '-', because it becomes part of host names",
            "fieldPath": ".metadata.name",
        },
        {
            # 63 characters, less those of "-worker-".
            "rule": "size(self.metadata.name) "
            f"+ size(string({workers} > 0 ? {workers} - 1 : 0)) <= 55",
            "message": "too long: the name of a worker, '<name>-worker-<index>', may have at most "
            "63 characters",
            "fieldPath": ".metadata.name",
        },
    ]


JOB = name_rules(
    "('Worker' in self.spec.mpiReplicaSpecs && has(self.spec.mpiReplicaSpecs['Worker'].replicas) "
    "? self.spec.mpiReplicaSpecs['Worker'].replicas : 0)"
)
SOME_WORKERS = {
    "rule": "!('Worker' in self.mpiReplicaSpecs) "
    f"|| !has({_WORKER}.replicas) || {_WORKER}.replicas > 0 "
    "|| (has(self.runLauncherAsWorker) && self.runLauncherAsWorker)",
    "message": "must be at least 1 unless runLauncherAsWorker is true",
    "fieldPath": ".mpiReplicaSpecs.Worker.replicas",
}
SAME_MANAGER = {
    "rule": f"{_manager('self')} == {_manager('oldSelf')}",
    "message": "field is immutable",
    "fieldPath": ".runPolicy.managedBy",
    "reason": "FieldValueForbidden",
}
ROLES = [
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
]

RULES: dict[type, list[Rule]] = {
    types.MPIJob: JOB,
    types.MPIJobSpec: [SOME_WORKERS, SAME_MANAGER],
    types.ReplicaSpecs: ROLES,
}
