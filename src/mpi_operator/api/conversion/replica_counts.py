"""The counts of pods in a status: v2beta1 writes zeros, older versions omit them as Go does."""

from collections.abc import Callable
from typing import Any

from mpi_operator.api.types import Manifest

from .places import get, with_value

_STATUSES = ("status", "replicaStatuses")
_COUNTS = ("active", "succeeded", "failed")
_ZEROS = dict.fromkeys(_COUNTS, 0)


def with_zeros(job: Manifest) -> Manifest:
    """The job with all counts of each role."""
    return _with_roles(job, lambda counts: _ZEROS | counts)


def without_zeros(job: Manifest) -> Manifest:
    """The job without the counts that are zero."""
    return _with_roles(
        job, lambda counts: {k: v for k, v in counts.items() if k not in _COUNTS or not _is_zero(v)}
    )


def _with_roles(job: Manifest, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Manifest:
    roles = get(job, _STATUSES)
    if not isinstance(roles, dict):
        return job
    changed = {
        role: change(counts) if isinstance(counts, dict) else counts
        for role, counts in roles.items()
    }
    result: Manifest = with_value(job, _STATUSES, changed)
    return result


def _is_zero(value: object) -> bool:
    return type(value) is int and value == 0
