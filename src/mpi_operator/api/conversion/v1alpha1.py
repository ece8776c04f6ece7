"""kubeflow.org/v1alpha1 as mpi-operator 0.1 to 0.3 understand it: one template for both roles."""

from collections.abc import Mapping
from typing import Any

from mpi_operator.api import annotations as names
from mpi_operator.api.types import Manifest

from . import units, v1alpha1_status
from .empty_choices import without_empty_choices
from .fields import (
    ACTIVE_DEADLINE,
    BACKOFF_LIMIT,
    CLEAN_POD_POLICY,
    LAUNCHER,
    WORKER,
    Field,
    hub_defaults,
    main_container_down,
    main_container_up,
    moved_down,
    moved_up,
    with_implied,
    without_implied,
    without_stale_error,
)
from .job_annotations import text, with_annotations
from .old_version import OldVersion, View
from .places import ABSENT, Place, get, value_at, with_value, without, without_all
from .replica_counts import with_zeros, without_zeros
from .stored_form import stored_form

_ROLES = ("spec", "mpiReplicaSpecs")
_TEMPLATE = ("spec", "template")
_FIRST = ("spec", "containers", "0")  # in a template
_COMMAND, _ARGS, _RESOURCES = (*_FIRST, "command"), (*_FIRST, "args"), (*_FIRST, "resources")
_LIMITS = (*_RESOURCES, "limits")
_RESTART_POLICY = ("spec", "restartPolicy")  # in a template
_SLOTS = ("spec", "slotsPerWorker")
_ON_MASTER = ("spec", "launcherOnMaster")

_FIELDS = (
    Field(("spec", "backoffLimit"), BACKOFF_LIMIT, own_wins=True),
    Field(("spec", "activeDeadlineSeconds"), ACTIVE_DEADLINE, own_wins=True),
)
# Where errors about the hub's fields belong; see `fields.own_place`.
_PLACES = (
    *_FIELDS,
    Field((*_TEMPLATE, *_RESTART_POLICY), (*LAUNCHER, "restartPolicy")),
    Field((*_TEMPLATE, *_RESTART_POLICY), (*WORKER, "restartPolicy")),
    Field(_TEMPLATE, (*LAUNCHER, "template")),
    Field(_TEMPLATE, (*WORKER, "template")),
    Field(("spec", "replicas"), (*WORKER, "replicas")),
    Field(_TEMPLATE, LAUNCHER),
    Field(_TEMPLATE, WORKER),
    Field(_TEMPLATE, _ROLES),
)
_OWN_GROUPS = (
    (
        *(("spec", name) for name in units.FIELDS),
        *((*_TEMPLATE, *_LIMITS, resource) for resource in (units.GPU, units.CPU)),
        _SLOTS,
    ),
    *((each.own, each.hub) for each in _FIELDS),
)
_HUB_GROUPS = (
    (
        (*WORKER, "replicas"),
        *((*WORKER, "template", *_LIMITS, resource) for resource in (units.GPU, units.CPU)),
        _SLOTS,
    ),
)

_IMPLIED: Mapping[Place, object] = {
    BACKOFF_LIMIT: 6,
    CLEAN_POD_POLICY: "All",
    ("spec", "launcherCreationPolicy"): "WaitForWorkersReady",
}
_MASTER_LABELS = ("node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane")
_MASTER_PLACEMENT: Mapping[Place, object] = {
    ("spec", "tolerations"): [
        {"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in _MASTER_LABELS
    ],
    ("spec", "affinity"): {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": key, "operator": "Exists"}]}
                    for key in _MASTER_LABELS
                ]
            }
        }
    },
}


def up(job: Manifest, view: View) -> Manifest:
    """The job of v1alpha1 in the hub."""
    job = v1alpha1_status.up(without_empty_choices(job))
    spec = job.get("spec")
    if isinstance(spec, dict):
        workers = units.allocation(spec, _remembered(job), view.units)
        job = main_container_up(moved_up(job, _FIELDS))
        job = _with_roles(job, workers, view)
        job = with_implied(job, _IMPLIED) if view.is_own else job
        job = _with_notes(job, workers)
    return stored_form(with_zeros(job))


def down(job: Manifest, view: View) -> Manifest:
    """The job of the hub in v1alpha1."""
    job = v1alpha1_status.down(without_zeros(without_stale_error(job)))
    if not isinstance(job.get("spec"), dict):
        return job
    hidden = {**hub_defaults(), **(_IMPLIED if view.is_own else {})}
    if view.is_own:
        hidden[_SLOTS] = _implied_slots(get(job, (*WORKER, "template")), units.GPU)
    job = moved_down(without_implied(job, hidden), _FIELDS, is_own=view.is_own)
    return _with_template(main_container_down(job), view)


def _remembered(job: Manifest) -> int | None:
    return units.whole_number(text(job, names.UNITS_PER_NODE))


def _with_notes(job: Manifest, workers: units.Allocation) -> Manifest:
    """The job with what the operator's settings said, and with the error or without an old one."""
    notes = {names.CONVERSION_ERROR: workers.error or None}
    if workers.settled_per_node is not None:
        notes[names.UNITS_PER_NODE] = str(workers.settled_per_node)
    return with_annotations(job, notes)


def _with_roles(job: Manifest, workers: units.Allocation, view: View) -> Manifest:
    """The job with both roles, as far as its fields say something about them."""
    template = get(job, _TEMPLATE)
    has_template = isinstance(template, dict)
    roles: dict[str, Any] = {}
    if has_template:
        roles["Launcher"] = _launcher(job, template, view)
    if has_template or workers.replicas is not None:
        roles["Worker"] = _worker(template if has_template else None, workers, view)
    if not roles:
        return job
    job = _with_slots(job, template, workers, view)
    result: Manifest = with_value(job, _ROLES, roles)
    return result


def _launcher(job: Manifest, template: dict[str, Any], view: View) -> dict[str, Any]:
    launcher = without_all(template, _RESOURCES, _RESTART_POLICY)
    if get(job, _ON_MASTER) is True:
        for place, value in _MASTER_PLACEMENT.items():
            launcher = with_value(launcher, place, value)
    policy = get(template, _RESTART_POLICY)
    if policy is not None or view.is_own:
        shown = "Never" if policy == "Never" else "OnFailure"
        return {"replicas": 1, "restartPolicy": shown, "template": launcher}
    return {"replicas": 1, "template": launcher}


def _worker(
    template: dict[str, Any] | None, workers: units.Allocation, view: View
) -> dict[str, Any]:
    worker: dict[str, Any] = {}
    if workers.replicas is not None:
        worker["replicas"] = workers.replicas
    if view.is_own:
        worker["restartPolicy"] = "OnFailure"  # they were pods of a StatefulSet
    if template is not None:
        worker["template"] = without_all(template, _COMMAND, _ARGS, _RESTART_POLICY)
        if workers.units is not None:
            limit = (*_LIMITS, workers.resource)
            worker["template"] = _with_limit(worker["template"], limit, workers.units)
    return worker


def _with_limit(template: dict[str, Any], limit: Place, amount: int) -> Any:
    """The template with a limit of its first container, if it has one."""
    has_container = isinstance(value_at(template, _FIRST), dict)
    return with_value(template, limit, amount) if has_container else template


def _with_slots(job: Manifest, template: Any, workers: units.Allocation, view: View) -> Manifest:
    if get(job, _SLOTS) is not None or not view.is_own:
        return job
    slots = workers.units or _implied_slots(template, workers.resource)
    result: Manifest = with_value(job, _SLOTS, slots)
    return result


def _implied_slots(template: Any, resource: str) -> int:
    """The slots of a worker that says nothing about them: its units."""
    return units.whole_number(get(template, (*_LIMITS, resource))) or 1


def _with_template(job: Manifest, view: View) -> Manifest:
    """The job with one template: the worker's, with what the launcher runs."""
    launcher, worker = get(job, LAUNCHER), get(job, WORKER)
    if not isinstance(get(job, _ROLES), dict):
        return job
    job = without(job, _ROLES)
    replicas = value_at(worker, ("replicas",))
    if replicas is not ABSENT:
        job = with_value(job, ("spec", "replicas"), replicas)
    if _is_on_master(get(launcher, ("template",))):
        job = with_value(job, _ON_MASTER, True)
    template = _merged(get(launcher, ("template",)), get(worker, ("template",)))
    template = _with_policy(template, get(launcher, ("restartPolicy",)), view)
    return job if template is None else with_value(job, _TEMPLATE, template)


def _is_on_master(template: Any) -> bool:
    return all(value_at(template, place) == value for place, value in _MASTER_PLACEMENT.items())


def _merged(launcher: Any, worker: Any) -> Any:
    if not isinstance(worker, dict):
        return launcher if isinstance(launcher, dict) else None
    template = without_all(worker, _COMMAND, _ARGS)
    for place in (_COMMAND, _ARGS):
        found = value_at(launcher, place)
        if found is not ABSENT and isinstance(value_at(template, _FIRST), dict):
            template = with_value(template, place, found)
    return template


def _with_policy(template: Any, policy: Any, view: View) -> Any:
    is_implied = view.is_own and policy == "OnFailure"
    is_possible = isinstance(value_at(template, ("spec",)), dict)
    if policy is None or is_implied or not is_possible:
        return template
    return with_value(template, _RESTART_POLICY, policy)


V1ALPHA1 = OldVersion("v1alpha1", up, down, _PLACES, _OWN_GROUPS, _HUB_GROUPS)
