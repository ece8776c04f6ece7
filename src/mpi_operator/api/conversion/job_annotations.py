"""The annotations of a job in any version, as a plain manifest that may be malformed."""

from collections.abc import Mapping
from typing import Any

from mpi_operator.api import annotations as names
from mpi_operator.api.types import Manifest

# All annotations that conversion may add, change or remove. It never touches other metadata.
OURS = frozenset(
    {
        names.WRITTEN_IN,
        names.CONVERTED_FIELDS,
        names.CONVERSION_ERROR,
        names.UNITS_PER_NODE,
        names.MAIN_CONTAINER,
        names.LAUNCHER_RESTART_POLICY,
        names.WORKER_RESTART_POLICY,
    }
)


def text(job: Mapping[str, Any], name: str) -> str:
    """The value of an annotation; empty if it is absent or not text."""
    value = _annotations(job).get(name)
    return value if isinstance(value, str) else ""


def with_annotations(job: Manifest, changes: Mapping[str, str | None]) -> Manifest:
    """The job with these annotations; None removes one. Nothing empty is left behind.

    The same job if its metadata is malformed.
    """
    metadata = job.get("metadata")
    metadata = {} if metadata is None else metadata
    if not isinstance(metadata, dict) or _is_malformed(metadata):
        return job
    old = _annotations(job)
    if all(old.get(name) == value for name, value in changes.items()):
        return job
    new = {name: value for name, value in {**old, **changes}.items() if value is not None}
    kept = {key: each for key, each in metadata.items() if key != "annotations"}
    return _with_metadata(job, kept | ({"annotations": new} if new else {}))


def _annotations(job: Mapping[str, Any]) -> dict[str, Any]:
    metadata = job.get("metadata")
    found = metadata.get("annotations") if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}


def _is_malformed(metadata: dict[str, Any]) -> bool:
    return not isinstance(metadata.get("annotations"), dict | None)


def _with_metadata(job: Manifest, metadata: dict[str, Any]) -> Manifest:
    if metadata:
        return {**job, "metadata": metadata}
    return {key: each for key, each in job.items() if key != "metadata"}
