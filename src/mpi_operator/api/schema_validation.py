"""How a manifest differs from a schema: everything at once, with paths, and never an exception.

This is what the API server does when it stores a job, for manifests that come another way: from a
file, or from a time when the server knew other rules. Like the server it takes null for "not
given", and lets fields be that it does not know.
"""

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from .field_errors import FieldError, Path, shown
from .schema import Schema
from .types import Time

_LIMITS = {"int32": 2**31 - 1, "int64": 2**63 - 1}
_A_TYPE: Mapping[str, tuple[type, str]] = {
    "object": (dict, "an object"),
    "array": (list, "a list"),
    "string": (str, "a string"),
    "integer": (int, "an integer"),
    "boolean": (bool, "true or false"),
}


@dataclass(frozen=True)
class Unknown:
    """A field that the schema does not have, and those that it has there."""

    path: Path
    known: tuple[str, ...]


@dataclass
class Findings:
    """What came out."""

    errors: list[FieldError] = field(default_factory=list)
    unknown: list[Unknown] = field(default_factory=list)
    unusable: list[Path] = field(default_factory=list)  # what has to go for the rest to be sound

    def add_error(self, path: Path, message: str, *, unusable: Path | None = None) -> None:
        self.errors.append(FieldError(path, message))
        self.unusable.append(path if unusable is None else unusable)


def findings(value: object, schema: Schema) -> Findings:
    """Everything in which a value differs from a schema."""
    found = Findings()
    _check(value, schema, Path(), found)
    return found


def without(value: Any, unusable: Iterable[tuple[Hashable, ...]]) -> Any:
    """A value less its parts at these keys. What is not concerned is not copied."""
    inner: dict[Hashable, list[tuple[Hashable, ...]]] = {}
    for first, *rest in unusable:
        inner.setdefault(first, []).append(tuple(rest))
    if not inner:
        return value
    items = value.items() if isinstance(value, dict) else enumerate(value)
    kept = {
        key: without(item, inner.get(key, ()))
        for key, item in items
        if () not in inner.get(key, ())
    }
    return kept if isinstance(value, dict) else list(kept.values())


def _check(value: object, schema: Schema, path: Path, found: Findings) -> None:
    if problem := next(_problems(value, schema), None):
        found.add_error(path, problem)
    elif isinstance(value, dict):
        _check_object(value, schema, path, found)
    elif isinstance(value, list):
        _check_list(value, schema, path, found)


def _check_object(value: dict[Any, Any], schema: Schema, path: Path, found: Findings) -> None:
    required = [path.field(name) for name in schema.get("required", ())]
    for each in required:
        if value.get(str(each.keys[-1])) is None:
            found.add_error(each, "is required")
    for key, item in value.items():
        _check_entry(key, item, schema, path, found)
    # An item of a list is nothing without these; elsewhere there is a default to go on with.
    is_item = bool(path.keys) and isinstance(path.keys[-1], int)
    if is_item and any(field in found.unusable for field in required):
        found.unusable.append(path)


def _check_entry(key: object, value: object, schema: Schema, path: Path, found: Findings) -> None:
    fields, others = schema.get("properties", {}), schema.get("additionalProperties")
    if not isinstance(key, str):
        found.add_error(path.entry(str(key)), "keys must be strings", unusable=path.entry(key))
    elif inner := fields.get(key) or others:
        below = path.field(key) if key in fields else path.entry(key)
        if _is_nothing(value, inner):
            found.unusable.append(below)
        else:
            _check(value, inner, below, found)
    elif value is not None and "x-kubernetes-preserve-unknown-fields" not in schema:
        found.unknown.append(Unknown(path.field(key), tuple(fields)))


def _is_nothing(value: object, schema: Schema) -> bool:
    """Whether a value stands for "not given".

    An empty string does too where there is a default: charts write one when a setting is empty.
    """
    has_default = schema.get("type") == "string" and "default" in schema and "enum" not in schema
    return value is None or (value == "" and has_default)


def _check_list(value: list[Any], schema: Schema, path: Path, found: Findings) -> None:
    for index, item in enumerate(value):
        _check(item, schema["items"], path.entry(index), found)
    if schema.get("x-kubernetes-list-type") == "map":
        _check_keys(value, schema, path, found)


def _check_keys(value: list[Any], schema: Schema, path: Path, found: Findings) -> None:
    """In a list that is a map, no two items may have the same key."""
    seen: set[str] = set()
    names = schema["x-kubernetes-list-map-keys"]
    fields = schema["items"]["properties"]
    for index, item in enumerate(value):
        if not isinstance(item, dict):
            continue
        key = ", ".join(f"{n} {shown(item.get(n, fields[n].get('default')))}" for n in names)
        if key in seen:
            found.add_error(path.entry(index), f"there is another one with {key}")
        seen.add(key)


def _problems(value: object, schema: Schema) -> Iterator[str]:
    """What is wrong with a value itself. The first one counts: others may only follow from it."""
    if "x-kubernetes-int-or-string" in schema:
        yield from _int_or_string_problems(value, schema)
        return
    expected, name = _A_TYPE[schema["type"]]
    if not isinstance(value, expected) or (isinstance(value, bool) and expected is int):
        yield f"must be {name}, got {shown(value)}"
    if "enum" in schema and value not in schema["enum"]:
        allowed = ", ".join(filter(None, schema["enum"]))
        yield f"must be one of {allowed}; got {shown(value)}"
    if isinstance(value, int):
        yield from _number_problems(value, schema)
    if schema.get("format") == "date-time" and not _is_time(value):
        yield f"must be a time such as 2026-01-31T12:00:00Z, got {shown(value)}"


def _number_problems(value: int, schema: Schema) -> Iterator[str]:
    largest = _LIMITS.get(schema.get("format", ""))
    lowest = schema.get("minimum", None if largest is None else -largest - 1)
    highest = schema.get("maximum", largest)
    if lowest is not None and value < lowest:
        yield f"must be at least {lowest}, got {shown(value)}"
    if highest is not None and value > highest:
        yield f"must be at most {highest}, got {shown(value)}"


def _int_or_string_problems(value: object, schema: Schema) -> Iterator[str]:
    if isinstance(value, bool) or not isinstance(value, int | str):
        yield f"must be an integer or a string, got {shown(value)}"
    elif isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"must be a quantity such as 500m or 2Gi, got {shown(value)}"


def _is_time(value: object) -> bool:
    try:
        msgspec.convert(value, Time)
    except msgspec.ValidationError:
        return False
    return True
