"""Jobs of every API version in v2beta1, as the cluster converts them."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from mpi_operator.api import annotations
from mpi_operator.api.conversion import VERSIONS, UnitSettings, UnknownVersion, convert
from mpi_operator.api.field_errors import FieldError
from mpi_operator.api.types import GROUP, VERSION, Manifest


class Unconvertible(ValueError):
    """A job has no counterpart in another version: why, for its author."""


def read(
    written: Manifest, units: Mapping[str, Any]
) -> tuple[Manifest, Callable[[FieldError], FieldError]]:
    """A job in v2beta1, and how errors about it read in its own version."""
    return to_hub(written, UnitSettings(**units)), lambda error: error


def to_hub(job: Mapping[str, Any], units: UnitSettings) -> Manifest:
    """The job in v2beta1."""
    try:
        hub = convert(as_json(job), VERSION, units)
    except UnknownVersion as error:
        known = ", ".join(f"{GROUP}/{version}" for version in VERSIONS)
        why = f"unknown apiVersion {job.get('apiVersion')!r}; the versions are {known}"
        raise Unconvertible(why) from error
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
