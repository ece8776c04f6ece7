"""kubeflow.org/v1alpha2 as mpi-operator 0.3 understands it."""

from collections.abc import Mapping

from mpi_operator.api.types import Manifest

from .fields import (
    ACTIVE_DEADLINE,
    BACKOFF_LIMIT,
    CLEAN_POD_POLICY,
    FIRST_CONTAINER,
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
from .old_version import OldVersion, View
from .places import Place, given, value_at, with_value
from .replica_counts import with_zeros, without_zeros
from .stored_form import stored_form
from .v1 import without_idle_args

_LAUNCHER_POLICY, _WORKER_POLICY = (*LAUNCHER, "restartPolicy"), (*WORKER, "restartPolicy")
_COMMAND, _ARGS = (*WORKER, *FIRST_CONTAINER, "command"), (*WORKER, *FIRST_CONTAINER, "args")

_FIELDS = (
    Field(("spec", "backoffLimit"), BACKOFF_LIMIT),
    Field(("spec", "activeDeadlineSeconds"), ACTIVE_DEADLINE),
    Field(("spec", "cleanPodPolicy"), CLEAN_POD_POLICY, own_wins=True),
    Field(
        ("spec", "mpiDistribution"),
        ("spec", "mpiImplementation"),
        own_wins=True,
        values={"IntelMPI": "Intel"},
    ),
)
_OWN_GROUPS = (*((each.own, each.hub) for each in _FIELDS), (_COMMAND, _ARGS))
_HUB_GROUPS = ((_COMMAND, _ARGS),)

_ROLES: Mapping[Place, Place] = {LAUNCHER: _LAUNCHER_POLICY, WORKER: _WORKER_POLICY}
_HUB_POLICY: Mapping[Place, str] = {LAUNCHER: "OnFailure", WORKER: "Never"}


def up(job: Manifest, view: View) -> Manifest:
    """The job of v1alpha2 in the hub."""
    job = main_container_up(moved_up(job, _FIELDS))
    for policy in _ROLES.values():
        job = _policy_up(job, policy, view)
    if view.is_own:
        job = without_idle_args(with_implied(job, _implied(job)))
    return stored_form(without_stale_error(with_zeros(job)))


def down(job: Manifest, view: View) -> Manifest:
    """The job of the hub in v1alpha2."""
    if view.is_own:
        job = _with_policies_of_the_hub(job)
    job = without_implied(job, {**hub_defaults(), **(_implied(job) if view.is_own else {})})
    job = moved_down(main_container_down(job), _FIELDS, is_own=view.is_own)
    return without_zeros(without_stale_error(job))


def _implied(job: Manifest) -> dict[Place, object]:
    """What a job that was written in v1alpha2 says by leaving it out."""
    return {
        policy: "OnFailure"
        for role, policy in _ROLES.items()
        if isinstance(value_at(job, role), dict)
    }


def _policy_up(job: Manifest, place: Place, view: View) -> Manifest:
    """`Never` counts for launchers only: workers were pods of a StatefulSet."""
    policy = given(job, place)
    is_kept = policy == "Never" and (place == _LAUNCHER_POLICY or not view.is_own)
    if not isinstance(policy, str) or is_kept:
        return job
    result: Manifest = with_value(job, place, "OnFailure")
    return result


def _with_policies_of_the_hub(job: Manifest) -> Manifest:
    """The job with the hub's default policies spelled out, because here they are others."""
    implied = {
        policy: _HUB_POLICY[role]
        for role, policy in _ROLES.items()
        if isinstance(value_at(job, role), dict)
    }
    return with_implied(job, implied)


V1ALPHA2 = OldVersion("v1alpha2", up, down, _FIELDS, _OWN_GROUPS, _HUB_GROUPS)
