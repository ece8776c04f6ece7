"""Converted jobs as people write them: without what servers and conversions have added."""

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

from mpi_operator.api import annotations, schema
from mpi_operator.api.schema import Schema
from mpi_operator.api.types import Manifest

_SERVER_SET = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
_BOOKKEEPING = frozenset(
    {
        annotations.CONVERTED_FIELDS,
        annotations.UNITS_PER_NODE,
        "kubectl.kubernetes.io/last-applied-configuration",
    }
)


# A default that other operators do not have: the Go operator makes no workers.
_ALWAYS_SHOWN = ("mpiReplicaSpecs", "Worker", "replicas")


def cleaned(job: Manifest, *, keep_behavior: bool) -> Manifest:
    """A job without its status, and without metadata that is not the author's."""
    metadata = _mapping(job.get("metadata"))
    kept = {name: value for name, value in metadata.items() if name not in _SERVER_SET}
    if ours := _annotations(kept.pop("annotations", None), keep_behavior):
        kept["annotations"] = ours
    head = {"apiVersion": job["apiVersion"], "kind": job["kind"], "metadata": kept}
    return head | {k: v for k, v in job.items() if k not in (*head, "status")}


def without_defaults(job: Manifest, written: Mapping[str, Any]) -> Manifest:
    """A job without the defaults of v2beta1, unless they are in the file that it comes from."""
    fields = schema.job()["properties"]["spec"]
    return {**job, "spec": _without_defaults(job.get("spec"), fields, written.get("spec"), ())}


def _annotations(given: object, keep_behavior: bool) -> dict[str, Any]:
    hidden = _BOOKKEEPING if keep_behavior else _BOOKKEEPING | {annotations.WRITTEN_IN}
    return {name: value for name, value in _mapping(given).items() if name not in hidden}


def _without_defaults(
    value: object, fields: Schema, written: object, place: tuple[str, ...]
) -> Any:
    """A value without the defaults of its schema; `written` is the same place in the file."""
    if isinstance(value, list) and "items" in fields:
        theirs = written if isinstance(written, list) else []
        return [
            _without_defaults(item, fields["items"], other, place)
            for item, other in zip_longest(value, theirs[: len(value)])
        ]
    if isinstance(value, dict):
        return _fields_without_defaults(value, fields, _mapping(written), place)
    return value


def _fields_without_defaults(
    value: dict[str, Any], fields: Schema, written: dict[str, Any], place: tuple[str, ...]
) -> dict[str, Any]:
    kept = {}
    for name, inner in value.items():
        here = (*place, name)
        known = fields.get("properties", {}).get(name) or fields.get("additionalProperties") or {}
        less = _without_defaults(inner, known, written.get(name), here)
        is_default = less == known.get("default", ...) or less == {} != inner
        if name in written or here == _ALWAYS_SHOWN or not is_default:
            kept[name] = less
    return kept


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
