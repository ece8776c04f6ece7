"""Jobs of every API version in v2beta1, as the cluster converts them."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from mpi_operator.api import annotations
from mpi_operator.api.conversion import UnitSettings, UnknownVersion, convert, own_path
from mpi_operator.api.field_errors import FieldError, Path
from mpi_operator.api.types import GROUP, VERSION, Manifest, ReplicaType

_ENTRIES = frozenset(ReplicaType)


class Unconvertible(ValueError):
    """A job has no counterpart in another version: why, for its author."""


def read(
    written: Manifest, units: Mapping[str, Any]
) -> tuple[Manifest, Callable[[FieldError], FieldError]]:
    """A job in v2beta1, and how errors about it read in its own version."""
    version = str(written.get("apiVersion")).removeprefix(f"{GROUP}/")
    return to_hub(written, UnitSettings(**units)), partial(_own, version)


def to_hub(job: Mapping[str, Any], units: UnitSettings) -> Manifest:
    """The job in v2beta1."""
    try:
        hub = convert(as_json(job), VERSION, units)
    except UnknownVersion as error:
        raise Unconvertible(f"apiVersion: {error}") from error
    problem = ((hub.get("metadata") or {}).get("annotations") or {}).get(
        annotations.CONVERSION_ERROR
    )
    if problem is not None:
        raise Unconvertible(problem)
    return hub


def as_json(job: Mapping[str, Any]) -> Manifest:
    """A copy that has only values of JSON, none of them shared as YAML's anchors share them."""
    try:
        copy: Manifest = json.loads(json.dumps(job, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise Unconvertible(f"a value cannot be written as JSON: {error}") from error
    return copy


def _own(version: str, error: FieldError) -> FieldError:
    """An error about v2beta1 as one about the version that the job is written in."""
    place = Path()
    for key in own_path(version, error.path.keys):
        is_entry = isinstance(key, int) or key in _ENTRIES
        place = place.entry(key) if is_entry else place.field(str(key))
    return FieldError(place, error.message)
