"""CEL rules in the CRD: what the API server enforces beyond the schema.

`validation` has the same rules, and more, in Python. Tests check that the two agree. The rules of
older versions, made from these, are in `versions.cel`.

A job that was stored under other rules, or through another version, must remain deletable and
suspendable: an update is refused only for an error that the stored job did not have. The API
server sees to that only where the object that has the rule does not change, and has no field that
the schema does not know, which every template of an older version has. So the rules look at the
stored job themselves; `optionalOldSelf` makes them apply to new jobs, too.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from . import types

Rule: TypeAlias = dict[str, Any]

# Makes an expression about an object, given the expression for that object.
Condition: TypeAlias = Callable[[str], str]


def unless_stored(condition: Condition) -> Rule:
    """The rule that a condition holds, unless the stored object does not fulfil it either."""
    old = "oldSelf.value()"
    return {
        "rule": f"({condition('self')}) || (oldSelf.hasValue() && !({condition(old)}))",
        "optionalOldSelf": True,
    }


def has_containers(holder: str) -> str:
    """That a template has containers, given the object that has the template."""
    template = f"{holder}.template"
    return f"has({template}) && has({template}.spec) && size({template}.spec.containers) > 0"


def containers(path: str, condition: Condition = has_containers) -> Rule:
    """The rule that a template has containers, given the path of the object that has it."""
    return unless_stored(condition) | {
        "message": "at least one container is required",
        "reason": "FieldValueRequired",
        "fieldPath": f"{path}.template.spec.containers",
    }


def _containers_in(role: types.ReplicaType) -> Rule:
    def condition(roles: str) -> str:
        spec = f"{roles}['{role}']"
        return f"!('{role}' in {roles}) || ({has_containers(spec)})"

    return containers(f".{role}", condition)


def _manager(spec: str) -> str:
    return (
        f"(has({spec}.runPolicy) && has({spec}.runPolicy.managedBy) "
        f"? {spec}.runPolicy.managedBy : '')"
    )


def name_rules(workers: Condition) -> list[Rule]:
    """The rules for a job's name, given how to count its workers.

    A name never changes, so a stored job has the one that it has.
    """
    count = workers("self")
    return [
        {
            "rule": "oldSelf.hasValue() "
            "|| self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
            "optionalOldSelf": True,
            "message": "must consist of lower-case letters, digits and '-', start with a letter "
            "and not end with '-', because it becomes part of host names",
            "fieldPath": ".metadata.name",
        },
        {
            # 63 characters, less those of "-worker-".
            "rule": f"size(self.metadata.name) + size(string({count} > 0 ? {count} - 1 : 0)) <= 55 "
            f"|| (oldSelf.hasValue() && {count} <= {workers('oldSelf.value()')})",
            "optionalOldSelf": True,
            "message": "too long: the name of a worker, '<name>-worker-<index>', may have at most "
            "63 characters",
            "fieldPath": ".metadata.name",
        },
    ]


def _workers(job: str) -> str:
    roles = f"{job}.spec.mpiReplicaSpecs"
    replicas = f"{roles}['Worker'].replicas"
    return f"('Worker' in {roles} && has({replicas}) ? {replicas} : 0)"


def some_workers(spec: str) -> str:
    """That a spec does not ask for zero workers, or has a launcher that runs ranks instead."""
    roles = f"{spec}.mpiReplicaSpecs"
    replicas, as_worker = f"{roles}['Worker'].replicas", f"{spec}.runLauncherAsWorker"
    return (
        f"!('Worker' in {roles}) || !has({replicas}) || {replicas} > 0 "
        f"|| (has({as_worker}) && {as_worker})"
    )


def _one_launcher(roles: str) -> str:
    replicas = f"{roles}['Launcher'].replicas"
    return f"!('Launcher' in {roles}) || !has({replicas}) || {replicas} == 1"


JOB = name_rules(_workers)
SOME_WORKERS = unless_stored(some_workers) | {
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
    unless_stored(lambda roles: f"'Launcher' in {roles}")
    | {
        "message": "a job needs a Launcher",
        "fieldPath": ".Launcher",
        "reason": "FieldValueRequired",
    },
    unless_stored(_one_launcher)
    | {
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
