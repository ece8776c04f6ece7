"""Keeps the books of the conversion within what Kubernetes allows for the annotations of an object.

A job that is written in an old version is refused if they would be larger. Reading must not fail,
because one job would make a list of all of them fail: a job is then shown without the books, and
cannot be changed or deleted through that version.
"""

from mpi_operator.api import annotations, types
from mpi_operator.api.conversion.job_annotations import text, with_annotations
from mpi_operator.api.conversion.places import given
from mpi_operator.kube.resources import Manifest

_LIMIT = 256 * 1024  # of the names and values of all annotations
_TOO_LARGE = "too large"


def size_error(job: Manifest, converted: Manifest) -> str:
    """Why a job cannot be written in its version; empty if it can."""
    version = str(job.get("apiVersion")).rpartition("/")[2]
    if text(job, annotations.CONVERTED_FIELDS) == _TOO_LARGE:
        return f"has too much that {version} cannot say to be changed there; use {types.VERSION}"
    if version != types.VERSION and _is_too_large(converted):
        return (
            f"has too much that {types.VERSION} cannot say: together with its annotations it may "
            f"have at most {_LIMIT} bytes; remove unknown fields"
        )
    return ""


def bounded(converted: Manifest) -> Manifest:
    """A job to be shown, without its books if they are too large."""
    if not _is_too_large(converted):
        return converted
    return with_annotations(converted, {annotations.CONVERTED_FIELDS: _TOO_LARGE})


def _is_too_large(job: Manifest) -> bool:
    """Whether it is the books that are too large: only they are ours to refuse."""
    found = given(job, ("metadata", "annotations"))
    if not text(job, annotations.CONVERTED_FIELDS) or not isinstance(found, dict):
        return False
    return sum(len(part.encode()) for each in found.items() for part in map(str, each)) > _LIMIT
