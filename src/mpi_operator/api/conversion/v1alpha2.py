"""kubeflow.org/v1alpha2 as mpi-operator 0.3 understands it."""

from mpi_operator.api.types import Manifest

from .fields import ACTIVE_DEADLINE, BACKOFF_LIMIT, CLEAN_POD_POLICY, Field, with_implied
from .old_version import OldVersion, View
from .places import Place, get, with_value
from .roles import (
    IDLE_ARGS,
    LAUNCHER_POLICY,
    POLICIES,
    implied_policies,
    with_hub_policies,
    without_idle_args,
)
from .shared_steps import stored, with_hub_fields, with_own_fields

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
    job = with_hub_fields(job, _FIELDS)
    for place in POLICIES:
        job = _policy_up(job, place, view)
    if view.is_own:
        job = without_idle_args(with_implied(job, _implied(job)))
    return stored(job)


def down(job: Manifest, view: View) -> Manifest:
    """The job of the hub in v1alpha2."""
    if not view.is_own:
        return with_own_fields(job, _FIELDS, {}, view)
    job = with_hub_policies(job)
    return with_own_fields(job, _FIELDS, _implied(job), view)


def _implied(job: Manifest) -> dict[Place, object]:
    """What a job that was written in v1alpha2 says by leaving it out."""
    return implied_policies(job, "OnFailure")


def _policy_up(job: Manifest, place: Place, view: View) -> Manifest:
    """`Never` counts for launchers only: workers were pods of a StatefulSet."""
    policy = get(job, place)
    is_kept = policy == "Never" and (place == LAUNCHER_POLICY or not view.is_own)
    if not isinstance(policy, str) or is_kept:
        return job
    result: Manifest = with_value(job, place, "OnFailure")
    return result


V1ALPHA2 = OldVersion("v1alpha2", up, down, _FIELDS, _OWN_GROUPS, _HUB_GROUPS)
