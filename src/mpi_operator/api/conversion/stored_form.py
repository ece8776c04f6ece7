"""What the API server stores of an object: pruned by its schema, and with the schema's defaults.

Works as the server does with structural schemas: unknown fields go, null is "not given" where
the schema has the field, and a default is added wherever its object is. Values of a wrong type
stay, but for what is inside them. A list keeps its nulls.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from mpi_operator.api import schema
from mpi_operator.api.types import Manifest


class Shape:
    """What a schema says about fields, prepared for speed."""

    __slots__ = ("defaults", "fields", "is_open", "items", "others")

    def __init__(self, source: schema.Schema) -> None:
        others, items = source.get("additionalProperties"), source.get("items")
        self.is_open: bool = source.get("x-kubernetes-preserve-unknown-fields", False)
        self.fields = {name: Shape(each) for name, each in source.get("properties", {}).items()}
        self.others = Shape(others) if isinstance(others, dict) else None
        self.items: Shape | None = Shape(items) if items else None
        self.defaults: Mapping[str, Any] = {
            name: each["default"]
            for name, each in source.get("properties", {}).items()
            if each.get("default") is not None
        }


_UNKNOWN = Shape({})
_ANYTHING = Shape({"x-kubernetes-preserve-unknown-fields": True})


def stored_form(job: Manifest) -> Manifest:
    """The job of the stored version as the API server would store it. Unchanged parts are shared.

    Metadata stays as it is.
    """
    roots = _roots()
    changed = {
        root: pruned_and_defaulted(job[root], shape)
        for root, shape in roots.items()
        if job.get(root) is not None
    }
    kept = {key: each for key, each in job.items() if key not in roots or each is not None}
    return kept | changed


def pruned_and_defaulted(value: Any, shape: Shape) -> Any:
    """The value as the server would store it; the same object if nothing changes."""
    if isinstance(value, dict):
        return _object(value, shape)
    if isinstance(value, list):
        return _list(value, shape)
    return value


@cache
def _roots() -> Mapping[str, Shape]:
    fields = schema.job()["properties"]
    return {root: Shape(fields[root]) for root in ("spec", "status")}


def _object(value: dict[str, Any], shape: Shape) -> dict[str, Any]:
    stored = dict(_entries(value, shape))
    for name, default in shape.defaults.items():
        if name not in stored:
            stored[name] = default
    is_same = len(stored) == len(value) and all(
        key in value and value[key] is each for key, each in stored.items()
    )
    return value if is_same else stored


def _entries(value: dict[str, Any], shape: Shape) -> Iterator[tuple[str, Any]]:
    fields, others, is_open = shape.fields, shape.others, shape.is_open
    for key, each in value.items():
        inner = fields.get(key) or others
        if inner is None:
            if is_open:
                yield key, each
        elif isinstance(each, dict):
            yield key, _object(each, inner)
        elif isinstance(each, list):
            yield key, _list(each, inner)
        elif each is not None:
            yield key, each


def _list(value: list[Any], shape: Shape) -> list[Any]:
    inner = shape.items or (_ANYTHING if shape.is_open else _UNKNOWN)
    stored = [pruned_and_defaulted(each, inner) for each in value]
    is_same = all(new is old for new, old in zip(stored, value, strict=True))
    return value if is_same else stored
