"""Decides whether a job may be stored, in the terms of the version that it is written in.

The API server has applied the schema and the CEL rules of that version before. What remains is what
they cannot see: the job that the conversion makes of it has to be valid, too. An update is refused
only for an error that the stored job did not have, because a job that is invalid has to remain
deletable, suspendable and readable.
"""

from collections.abc import Iterator
from typing import Any

from mpi_operator.api import annotations, types
from mpi_operator.api.conversion import VERSIONS, UnitSettings, convert
from mpi_operator.api.conversion.places import get
from mpi_operator.api.field_errors import FieldError, Path, unsupported
from mpi_operator.kube.resources import Manifest

from . import job_errors, job_warnings
from .admission_response import Admission

_ALLOWED = Admission(allowed=True)
_WRITTEN_IN = Path().field("metadata").field("annotations").entry(annotations.WRITTEN_IN)


def validate(request: Manifest, units: UnitSettings) -> Admission:
    """Whether the job of an AdmissionReview's request may be stored."""
    job, stored = _objects(request)
    version = _version(job)
    if not version or _is_deleted(job) or _is_same(job, stored, units):
        return _ALLOWED
    if errors := _new_errors(job, stored, version, units):
        return Admission(allowed=False, message="; ".join(map(str, errors)))
    known = set(_warnings(stored, version, units)) if stored else set()
    warnings = dict.fromkeys(_warnings(job, version, units))
    return Admission(allowed=True, warnings=tuple(text for text in warnings if text not in known))


def mutate(request: Manifest) -> Admission:
    """Keep the version that a job was written in, because its behaviour depends on that."""
    job, stored = _objects(request)
    version = _version(job)
    if not version or not stored or _is_deleted(job):
        return _ALLOWED
    before, after = (_annotations(each).get(annotations.WRITTEN_IN) for each in (stored, job))
    # A version does not show its own name.
    if (before or version) == (after or version):
        return _ALLOWED
    warning = f"keeps {before or version} behaviour; recreate the job to change it"
    error = FieldError(_WRITTEN_IN, warning)
    return Admission(allowed=True, warnings=(str(error),), patch=(_restored(job, before),))


def _objects(request: Manifest) -> tuple[Manifest, Manifest]:
    """The job to be stored and the one that is stored, empty where there is none.

    Both have the same version, because the API server converts the stored one.
    """
    job, stored = request.get("object"), request.get("oldObject")
    if not isinstance(job, dict):
        return {}, {}
    if not isinstance(stored, dict) or stored.get("apiVersion") != job.get("apiVersion"):
        return job, {}
    return job, stored


def _version(job: Manifest) -> str:
    """The version of a job; empty if it is not ours."""
    group, _, version = str(job.get("apiVersion")).partition("/")
    return version if group == types.GROUP and version in VERSIONS else ""


def _is_same(job: Manifest, stored: Manifest, units: UnitSettings) -> bool:
    """Whether an update leaves the spec as it is, also that of the stored version.

    The conversion reads annotations, so the same spec in one version can be another one there.
    """
    if not stored or job.get("spec") != stored.get("spec"):
        return False
    before, after = (convert(each, types.VERSION, units).get("spec") for each in (stored, job))
    return bool(before == after)


def _is_deleted(job: Manifest) -> bool:
    metadata = job.get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("deletionTimestamp"))


def _new_errors(
    job: Manifest, stored: Manifest, version: str, units: UnitSettings
) -> list[FieldError]:
    errors = job_errors.errors(job, version, units)
    if not errors or not stored:
        return errors
    known = {error.path for error in job_errors.errors(stored, version, units)}
    return [each for each in errors if each.path not in known or _differs(job, stored, each.path)]


def _differs(job: Manifest, stored: Manifest, path: Path) -> bool:
    place = tuple(map(str, path.keys))
    return bool(get(job, place) != get(stored, place))


def _warnings(job: Manifest, version: str, units: UnitSettings) -> Iterator[str]:
    yield from map(str, job_warnings.warnings(job, version, units))
    name = _annotations(job).get(annotations.WRITTEN_IN)
    if name not in (None, *VERSIONS):
        yield str(FieldError(_WRITTEN_IN, f"ignored: {unsupported(name, VERSIONS)}"))


def _annotations(job: Manifest) -> dict[str, Any]:
    found = get(job, ("metadata", "annotations"))
    return found if isinstance(found, dict) else {}


def _restored(job: Manifest, before: str | None) -> Manifest:
    """The JSON patch operation that gives a job back its annotation."""
    parent, name = "/metadata/annotations", annotations.WRITTEN_IN
    path = f"{parent}/{name.replace('/', '~1')}"
    if before is None:
        return {"op": "remove", "path": path}
    if not _annotations(job):
        return {"op": "add", "path": parent, "value": {name: before}}
    return {"op": "add", "path": path, "value": before}
