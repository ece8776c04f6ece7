"""The first and the last steps of every conversion of v1 and v1alpha2, which differ in little."""

from collections.abc import Iterable, Mapping

from mpi_operator.api.types import Manifest

from .empty_choices import without_empty_choices
from .fields import (
    Field,
    hub_defaults,
    main_container_down,
    main_container_up,
    moved_down,
    moved_up,
    without_implied,
    without_stale_error,
)
from .old_version import View
from .places import Place
from .replica_counts import with_zeros, without_zeros
from .stored_form import stored_form


def with_hub_fields(job: Manifest, fields: Iterable[Field]) -> Manifest:
    """The job with its fields where the hub has them: the first step up."""
    return main_container_up(moved_up(without_empty_choices(job), fields))


def stored(job: Manifest) -> Manifest:
    """The job as the API server stores it in the hub: the last step up."""
    return stored_form(without_stale_error(with_zeros(job)))


def with_own_fields(
    job: Manifest, fields: Iterable[Field], implied: Mapping[Place, object], view: View
) -> Manifest:
    """The job with its fields where the version has them, without defaults: the last step down."""
    job = main_container_down(without_implied(job, {**hub_defaults(), **implied}))
    job = moved_down(job, fields, is_own=view.is_own)
    return without_zeros(without_stale_error(job))
