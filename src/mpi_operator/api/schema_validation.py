"""Validates a manifest against a schema, as the API server does when it stores a job.

For manifests that no server has validated: from a file, or stored under older rules. Reports every
error at once, with its path, and never raises. Like the server it treats null as "not given" and
accepts unknown fields.
"""

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from .field_errors import FieldError, Path, invalid, required, shown, unsupported
from .schema import Schema
from .types import Time

_LIMITS = {"int32": 2**31 - 1, "int64": 2**63 - 1}
_A_TYPE: Mapping[str, tuple[type, str]] = {
    "object": (dict, "an object"),
    "array": (list, "an array"),
    "string": (str, "a string"),
    "integer": (int, "an integer"),
    "boolean": (bool, "true or false"),
}


@dataclass(frozen=True)
class UnknownField:
    """A field that the schema does not have, and the fields that it has in that place."""

    path: Path
    known: tuple[str, ...]


@dataclass
class Report:
    """The result of a validation."""

    errors: list[FieldError] = field(default_factory=list)
    unknown_fields: list[UnknownField] = field(default_factory=list)
    to_prune: list[Path] = field(default_factory=list)  # without these the value is valid

    def add_error(self, path: Path, message: str, *, prune: Path | None = None) -> None:
        self.errors.append(FieldError(path, message))
        self.to_prune.append(path if prune is None else prune)


def validate(value: object, schema: Schema) -> Report:
    """Every error and every unknown field in a value."""
    report = Report()
    _check(value, schema, Path(), report)
    return report


def pruned(value: Any, paths: Iterable[tuple[Hashable, ...]]) -> Any:
    """A value without its parts at these paths. Unchanged parts are not copied."""
    inner: dict[Hashable, list[tuple[Hashable, ...]]] = {}
    for first, *rest in paths:
        inner.setdefault(first, []).append(tuple(rest))
    if not inner:
        return value
    items = value.items() if isinstance(value, dict) else enumerate(value)
    kept = {
        key: pruned(item, inner.get(key, ())) for key, item in items if () not in inner.get(key, ())
    }
    return kept if isinstance(value, dict) else list(kept.values())


def _check(value: object, schema: Schema, path: Path, report: Report) -> None:
    if problem := next(_problems(value, schema), None):
        report.add_error(path, problem)
    elif isinstance(value, dict):
        _check_object(value, schema, path, report)
    elif isinstance(value, list):
        _check_list(value, schema, path, report)


def _check_object(value: dict[Any, Any], schema: Schema, path: Path, report: Report) -> None:
    needed = [path.field(name) for name in schema.get("required", ())]
    for each in needed:
        if value.get(str(each.keys[-1])) is None:
            report.add_error(each, required())
    for key, item in value.items():
        _check_entry(key, item, schema, path, report)
    # An item of a list has no defaults for these, so the whole item is invalid.
    is_item = bool(path.keys) and isinstance(path.keys[-1], int)
    if is_item and any(field in report.to_prune for field in needed):
        report.to_prune.append(path)


def _check_entry(key: object, value: object, schema: Schema, path: Path, report: Report) -> None:
    fields, others = schema.get("properties", {}), schema.get("additionalProperties")
    if not isinstance(key, str):
        report.add_error(path.entry(str(key)), "keys must be strings", prune=path.entry(key))
    elif inner := fields.get(key) or others:
        below = path.field(key) if key in fields else path.entry(key)
        if _is_not_given(value, inner):
            report.to_prune.append(below)
        else:
            _check(value, inner, below, report)
    elif value is not None and "x-kubernetes-preserve-unknown-fields" not in schema:
        report.unknown_fields.append(UnknownField(path.field(key), tuple(fields)))


def _is_not_given(value: object, schema: Schema) -> bool:
    """Whether a value means "not given".

    So does an empty string where the field has a default: charts write one for an empty setting.
    """
    has_default = schema.get("type") == "string" and "default" in schema and "enum" not in schema
    return value is None or (value == "" and has_default)


def _check_list(value: list[Any], schema: Schema, path: Path, report: Report) -> None:
    for index, item in enumerate(value):
        _check(item, schema["items"], path.entry(index), report)
    if schema.get("x-kubernetes-list-type") == "map":
        _check_keys(value, schema, path, report)


def _check_keys(value: list[Any], schema: Schema, path: Path, report: Report) -> None:
    """Report items of a list map that have the key of an earlier one."""
    seen: set[str] = set()
    names = schema["x-kubernetes-list-map-keys"]
    fields = schema["items"]["properties"]
    for index, item in enumerate(value):
        if not isinstance(item, dict):
            continue
        key = ", ".join(f"{n} {shown(item.get(n, fields[n].get('default')))}" for n in names)
        if key in seen:
            report.add_error(path.entry(index), f"Duplicate value: {key}")
        seen.add(key)


def _problems(value: object, schema: Schema) -> Iterator[str]:
    """What is wrong with a value itself. Only the first counts: the others may follow from it."""
    if "x-kubernetes-int-or-string" in schema:
        yield from _int_or_string_problems(value, schema)
        return
    expected, name = _A_TYPE[schema["type"]]
    if not isinstance(value, expected) or (isinstance(value, bool) and expected is int):
        yield invalid(value, f"must be {name}")
    if "enum" in schema and value not in schema["enum"]:
        yield unsupported(value, filter(None, schema["enum"]))
    if isinstance(value, int):
        yield from _number_problems(value, schema)
    if schema.get("format") == "date-time" and not _is_time(value):
        yield invalid(value, "must be a time such as 2026-01-31T12:00:00Z")


def _number_problems(value: int, schema: Schema) -> Iterator[str]:
    largest = _LIMITS.get(schema.get("format", ""))
    lowest = schema.get("minimum", None if largest is None else -largest - 1)
    highest = schema.get("maximum", largest)
    if lowest is not None and value < lowest:
        yield invalid(value, f"must be greater than or equal to {lowest}")
    if highest is not None and value > highest:
        yield invalid(value, f"must be less than or equal to {highest}")


def _int_or_string_problems(value: object, schema: Schema) -> Iterator[str]:
    if isinstance(value, bool) or not isinstance(value, int | str):
        yield invalid(value, "must be an integer or a string")
    elif isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield invalid(value, "must be a quantity such as 500m or 2Gi")


def _is_time(value: object) -> bool:
    try:
        msgspec.convert(value, Time)
    except msgspec.ValidationError:
        return False
    return True
