"""Keeps the annotation of the conversion, `converted-fields`, within the limit of Kubernetes.

An API server refuses a conversion that adds annotations beyond that. Writing a job in an old
version then fails with a sentence. Reading must not fail, because one job would make every list of
jobs fail: a job is then shown without the annotation, and cannot be changed or deleted through that
version.
"""

from mpi_operator.api import annotations, types
from mpi_operator.api.conversion.job_annotations import text, with_annotations
from mpi_operator.api.conversion.places import get
from mpi_operator.kube.resources import Manifest

_LIMIT = 256 * 1024  # of the names and values of all annotations
_TOO_LARGE = "too large"
_ANNOTATIONS = ("metadata", "annotations")


def size_error(job: Manifest, converted: Manifest) -> str:
    """Why a job cannot be written in its version; empty if it can."""
    version = str(job.get("apiVersion")).rpartition("/")[2]
    if text(job, annotations.CONVERTED_FIELDS) == _TOO_LARGE:
        return (
            f"cannot be changed in {version}, because too much of it has no field there; use "
            f"{types.VERSION}"
        )
    if version != types.VERSION and _is_too_large(job, converted):
        return (
            f"too much of it has no field in {types.VERSION}: together with its annotations, that "
            f"may have at most {_LIMIT} bytes; remove unknown fields"
        )
    return ""


def bounded(job: Manifest, converted: Manifest) -> Manifest:
    """The converted job, without the annotation if it is too large.

    If the author has left no room for any annotation of ours, it has exactly those of the job.
    """
    if not _is_too_large(job, converted):
        return converted
    marked = with_annotations(converted, {annotations.CONVERTED_FIELDS: _TOO_LARGE})
    return {**marked, "metadata": job["metadata"]} if _is_too_large(job, marked) else marked


def _is_too_large(job: Manifest, converted: Manifest) -> bool:
    """Whether the conversion has made the annotations too large: those of others are not ours."""
    before, after = (get(each, _ANNOTATIONS) for each in (job, converted))
    if before == after or not isinstance(after, dict):
        return False
    return sum(len(part.encode()) for each in after.items() for part in map(str, each)) > _LIMIT
