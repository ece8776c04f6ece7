"""Jobs of every API version in v2beta1, converted and checked as the cluster does."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mpi_operator.api import annotations
from mpi_operator.api.conversion import UnitSettings, UnknownVersion, convert
from mpi_operator.api.field_errors import FieldError, InvalidJob
from mpi_operator.api.types import GROUP, VERSION, Manifest
from mpi_operator.webhook import field_paths, job_errors, job_warnings


class Unconvertible(ValueError):
    """A job has no counterpart in another version: why, for its author."""


class OldJob(NamedTuple):
    """A valid job of an older version."""

    version: str
    hub: Manifest
    warnings: Sequence[FieldError]

    def own(self, errors: Sequence[FieldError]) -> list[FieldError]:
        """Errors about the job in v2beta1, in the terms of its own version."""
        return field_paths.translated(self.version, errors)


def read(written: Mapping[str, Any], units: Mapping[str, Any]) -> OldJob:
    """A job of an older version; InvalidJob if it cannot run."""
    settings, job = UnitSettings(**units), as_json(written)
    version = str(job.get("apiVersion")).removeprefix(f"{GROUP}/")
    hub = to_hub(job, settings)
    if errors := job_errors.errors(job, version, settings):
        raise InvalidJob(errors)
    return OldJob(version, hub, [*job_warnings.warnings(job, version, settings)])


def to_hub(job: Mapping[str, Any], units: UnitSettings) -> Manifest:
    """The job in v2beta1."""
    try:
        hub = convert(as_json(job), VERSION, units)
    except UnknownVersion as error:
        raise Unconvertible(f"apiVersion: {error}") from error
    metadata = _object(hub.get("metadata"), "metadata")
    given = _object(metadata.get("annotations"), "metadata.annotations")
    if problem := given.get(annotations.CONVERSION_ERROR):
        name = f"metadata.annotations[{annotations.CONVERSION_ERROR}]"
        raise Unconvertible(problem if isinstance(problem, str) else f"{name}: must be a string")
    return hub


def _object(value: object, place: str) -> dict[str, Any]:
    if value is not None and not isinstance(value, dict):
        raise Unconvertible(f"{place}: must be an object")
    return value or {}


def as_json(job: Mapping[str, Any]) -> Manifest:
    """A copy that has only values of JSON, none of them shared as YAML's anchors share them."""
    try:
        copy: Manifest = json.loads(json.dumps(job, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise Unconvertible(f"a value cannot be written as JSON: {error}") from error
    return copy
