"""Why a job cannot run, in the terms of the version that it is written in."""

from collections.abc import Iterator

from mpi_operator.api import FieldError, InvalidJob, annotations, decode_job, types
from mpi_operator.api.conversion import UnitSettings, convert
from mpi_operator.api.conversion.places import get
from mpi_operator.api.field_errors import Path, required
from mpi_operator.kube.resources import Manifest

from .annotation_size import size_error
from .field_paths import translated

_SPEC = Path().field("spec")
_TOTALS = ("gpus", "processingUnits", "replicas")
_NAME = Path().field("metadata").field("name")


def errors(job: Manifest, version: str, units: UnitSettings) -> list[FieldError]:
    """Every error in the spec and the name of a job."""
    hub = convert(job, types.VERSION, units)
    if problem := size_error(job, hub):
        return [FieldError(_SPEC, problem)]
    found = translated(version, _errors(hub))
    return [*(_total_errors(job) if version == "v1alpha1" else ()), *found]


def _errors(hub: Manifest) -> Iterator[FieldError]:
    try:
        decode_job(hub)
    except InvalidJob as invalid:
        for error in invalid.errors:
            if error.path.keys[:1] != ("status",) and not _will_be_named(hub, error):
                yield error


def _will_be_named(hub: Manifest, error: FieldError) -> bool:
    name, prefix = (get(hub, ("metadata", key)) for key in ("name", "generateName"))
    return error.path == _NAME and not name and bool(prefix)


def _total_errors(job: Manifest) -> Iterator[FieldError]:
    """What is missing of the fields of v1alpha1 that determine the number of workers."""
    has_total = any(get(job, ("spec", name)) is not None for name in _TOTALS)
    if not has_total and get(job, ("metadata", "annotations", annotations.WRITTEN_IN)) is None:
        yield FieldError(
            _SPEC.field("replicas"), required("one of gpus, processingUnits and replicas")
        )
