"""kubeflow.org/v1 as training-operator 1.9 understands it."""

from collections.abc import Mapping
from typing import Any

from mpi_operator.api import annotations as names
from mpi_operator.api.types import Manifest

from .fields import (
    BACKOFF_LIMIT,
    CLEAN_POD_POLICY,
    LAUNCHER,
    RUN_POLICY,
    Field,
    with_implied,
)
from .job_annotations import text, with_annotations
from .old_version import OldVersion, View
from .places import Place, get, with_value
from .roles import (
    IDLE_ARGS,
    LAUNCHER_POLICY,
    POLICIES,
    WORKER_POLICY,
    implied_policies,
    with_hub_policies,
    without_idle_args,
)
from .shared_steps import stored, with_hub_fields, with_own_fields

_MANAGED_BY = (*RUN_POLICY, "managedBy")
_RUN_LAUNCHER_AS_WORKER = ("spec", "runLauncherAsWorker")

_FIELDS = (
    Field(("spec", "cleanPodPolicy"), CLEAN_POD_POLICY, is_main=False),
    Field(
        _MANAGED_BY,
        _MANAGED_BY,
        values={"kubeflow.org/training-operator": "kubeflow.org/mpi-operator"},
    ),
)
_OWN_GROUPS = (
    (("spec", "cleanPodPolicy"), CLEAN_POD_POLICY),
    (LAUNCHER_POLICY, BACKOFF_LIMIT),
    IDLE_ARGS,
)
_HUB_GROUPS = _OWN_GROUPS[1:]

# By role: the annotation for policies that the hub has not, and what it has instead.
_ANNOTATIONS: Mapping[Place, str] = {
    LAUNCHER_POLICY: names.LAUNCHER_RESTART_POLICY,
    WORKER_POLICY: names.WORKER_RESTART_POLICY,
}
_INSTEAD: Mapping[Place, Mapping[str, str]] = {
    LAUNCHER_POLICY: {"ExitCode": "Never"},
    WORKER_POLICY: {"ExitCode": "Never", "Always": "OnFailure"},
}


def up(job: Manifest, view: View) -> Manifest:
    """The job of v1 in the hub."""
    job = with_hub_fields(job, _FIELDS)
    if view.is_own:
        job = with_implied(job, _implied(job))
        job = _without_retries(without_idle_args(job))
    for place in POLICIES:
        job = _policy_up(job, place)
    return stored(job)


def down(job: Manifest, view: View) -> Manifest:
    """The job of the hub in v1."""
    implied: dict[Place, object] = {}
    job = with_hub_policies(job) if view.is_own else job
    for place in POLICIES:
        job = _policy_down(job, place)
    if view.is_own:
        implied = _implied(job)
        if get(job, LAUNCHER_POLICY) == "Never":
            implied[BACKOFF_LIMIT] = 0
    return with_own_fields(job, _FIELDS, implied, view)


def _implied(job: Manifest) -> dict[Place, object]:
    """What a job that was written in v1 says by leaving it out."""
    return implied_policies(job, "Never") | {_RUN_LAUNCHER_AS_WORKER: _has_gpu_launcher(job)}


def _has_gpu_launcher(job: Manifest) -> bool:
    containers = get(job, (*LAUNCHER, "template", "spec", "containers"))
    return isinstance(containers, list) and any(map(_has_gpu_limit, containers))


def _has_gpu_limit(container: Any) -> bool:
    limits = get(container, ("resources", "limits"))
    return isinstance(limits, dict) and any("gpu" in name for name in limits)


def _without_retries(job: Manifest) -> Manifest:
    """The job without retries if its launcher is never restarted: a backoff limit had no effect."""
    if get(job, LAUNCHER_POLICY) != "Never":
        return job
    result: Manifest = with_value(job, BACKOFF_LIMIT, 0)
    return result


def _policy_up(job: Manifest, place: Place) -> Manifest:
    policy = get(job, place)
    if not isinstance(policy, str):
        return job
    if instead := _INSTEAD[place].get(policy):
        return with_annotations(with_value(job, place, instead), {_ANNOTATIONS[place]: policy})
    plain = "OnFailure" if policy == "Always" else policy
    return _without_special(with_value(job, place, plain), place, plain)


def _without_special(job: Manifest, place: Place, policy: str) -> Manifest:
    """The job without an annotation that would make more of its policy than it says."""
    special = text(job, _ANNOTATIONS[place])
    is_special = _INSTEAD[place].get(special) == policy
    return with_annotations(job, {_ANNOTATIONS[place]: None}) if is_special else job


def _policy_down(job: Manifest, place: Place) -> Manifest:
    policy, special = get(job, place), text(job, _ANNOTATIONS[place])
    if policy is None or _INSTEAD[place].get(special) != policy:
        return job
    return with_annotations(with_value(job, place, special), {_ANNOTATIONS[place]: None})


V1 = OldVersion("v1", up, down, _FIELDS, _OWN_GROUPS, _HUB_GROUPS)
