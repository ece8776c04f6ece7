"""Why a job cannot run, in the terms of the version that it is written in."""

from collections.abc import Iterator

from mpi_operator.api import FieldError, InvalidJob, annotations, decode_job, types
from mpi_operator.api.conversion import UnitSettings, convert
from mpi_operator.api.conversion.places import given
from mpi_operator.api.field_errors import Path, required
from mpi_operator.kube.resources import Manifest

from .own_terms import translated

_SPEC = Path().field("spec")
_REPLICAS = _SPEC.field("replicas")
_TOTALS = (_SPEC.field("gpus"), _SPEC.field("processingUnits"), _REPLICAS)
_NAME = Path().field("metadata").field("name")


def errors(job: Manifest, version: str, units: UnitSettings) -> list[FieldError]:
    """Every error in the spec and the name of a job."""
    hub = convert(job, types.VERSION, units)
    found = translated(version, _errors(hub))
    total = list(_total_errors(job, hub)) if version == "v1alpha1" else []
    # Units that do not divide leave the job without workers, which is not what its author wrote.
    return total + [each for each in found if not total or each.path != _REPLICAS]


def _errors(hub: Manifest) -> Iterator[FieldError]:
    try:
        decode_job(hub)
    except InvalidJob as invalid:
        for error in invalid.errors:
            if error.path.keys[:1] != ("status",) and not _will_be_named(hub, error):
                yield error


def _will_be_named(hub: Manifest, error: FieldError) -> bool:
    name, prefix = (given(hub, ("metadata", key)) for key in ("name", "generateName"))
    return error.path == _NAME and not name and bool(prefix)


def _total_errors(job: Manifest, hub: Manifest) -> Iterator[FieldError]:
    """What is wrong with the fields of v1alpha1 that determine the number of workers."""
    given_totals = [path for path in _TOTALS if given(job, tuple(map(str, path.keys))) is not None]
    if sentence := given(hub, ("metadata", "annotations", annotations.CONVERSION_ERROR)):
        path = next((each for each in given_totals if each != _REPLICAS), _TOTALS[0])
        yield FieldError(path, str(sentence).removeprefix(f"{path.text}: "))
    elif (
        not given_totals and given(job, ("metadata", "annotations", annotations.WRITTEN_IN)) is None
    ):
        yield FieldError(_REPLICAS, required("one of gpus, processingUnits and replicas"))
