"""kubeflow.org/v1alpha2 as mpi-operator 0.3 understands it."""

from mpi_operator.api.types import Manifest

from .empty_choices import without_empty_choices
from .fields import (
    ACTIVE_DEADLINE,
    BACKOFF_LIMIT,
    CLEAN_POD_POLICY,
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
from .places import Place, given, with_value
from .replica_counts import with_zeros, without_zeros
from .roles import (
    IDLE_ARGS,
    LAUNCHER_POLICY,
    POLICIES,
    implied_policies,
    with_hub_policies,
    without_idle_args,
)
from .stored_form import stored_form

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
_OWN_GROUPS = (*((each.own, each.hub) for each in _FIELDS), IDLE_ARGS)
_HUB_GROUPS = (IDLE_ARGS,)


def up(job: Manifest, view: View) -> Manifest:
    """The job of v1alpha2 in the hub."""
    job = main_container_up(moved_up(without_empty_choices(job), _FIELDS))
    for place in POLICIES:
        job = _policy_up(job, place, view)
    if view.is_own:
        job = without_idle_args(with_implied(job, _implied(job)))
    return stored_form(without_stale_error(with_zeros(job)))


def down(job: Manifest, view: View) -> Manifest:
    """The job of the hub in v1alpha2."""
    if view.is_own:
        job = with_hub_policies(job)
    job = without_implied(job, {**hub_defaults(), **(_implied(job) if view.is_own else {})})
    job = moved_down(main_container_down(job), _FIELDS, is_own=view.is_own)
    return without_zeros(without_stale_error(job))


def _implied(job: Manifest) -> dict[Place, object]:
    """What a job that was written in v1alpha2 says by leaving it out."""
    return implied_policies(job, "OnFailure")


def _policy_up(job: Manifest, place: Place, view: View) -> Manifest:
    """`Never` counts for launchers only: workers were pods of a StatefulSet."""
    policy = given(job, place)
    is_kept = policy == "Never" and (place == LAUNCHER_POLICY or not view.is_own)
    if not isinstance(policy, str) or is_kept:
        return job
    result: Manifest = with_value(job, place, "OnFailure")
    return result


V1ALPHA2 = OldVersion("v1alpha2", up, down, _FIELDS, _OWN_GROUPS, _HUB_GROUPS)
