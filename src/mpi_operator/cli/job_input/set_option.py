"""`--set`: fields of a job, changed on the command line.

A path is written as error messages write it, with dots or brackets:

    spec.mpiReplicaSpecs[Worker].template.spec.containers[0].image

The schema of the job's version decides which fields exist: setting an unknown field would
have no effect.
"""

import copy
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import yaml

from mpi_operator.api import schema
from mpi_operator.api.schema import Schema
from mpi_operator.api.types import GROUP, VERSION, ReplicaType
from mpi_operator.cli.command_errors import InvalidInput
from mpi_operator.cli.format import counted
from mpi_operator.kube.resources import Manifest

# Short names of the fields that people change most. They mean the same in every API version.
SHORT = {
    "name": "metadata.name",
    "workers": "spec.mpiReplicaSpecs.Worker.replicas",
    "slots": "spec.slotsPerWorker",
    "implementation": "spec.mpiImplementation",
    "backoffLimit": "spec.runPolicy.backoffLimit",
    "deadline": "spec.runPolicy.activeDeadlineSeconds",
}
_SETTABLE = ("metadata", "spec")
_ROLES = "mpiReplicaSpecs"
_STEP = re.compile(r"\.?([^.\[\]]+)|\[([^\[\]]+)\]")


class Setting(NamedTuple):
    """One `--set`."""

    text: str
    path: tuple[str, ...]
    value: str


class _Place(NamedTuple):
    """A part of a job: its value, what the schema says about it, and its path for messages."""

    value: Any
    schema: Schema
    text: str


def with_settings(job: Manifest, settings: Iterable[str]) -> Manifest:
    """A copy with fields set, each given as `workers=4` or `spec.slotsPerWorker=2`."""
    changed = copy.deepcopy(job)
    for text in settings:
        _apply(parsed(text), changed)
    return changed


def is_short(text: str) -> bool:
    """Whether a setting means the same in every API version, so that v2beta1 has its path."""
    name = text.partition("=")[0]
    return name in SHORT and name != "name"  # metadata is the same in every version


def parsed(text: str) -> Setting:
    """A setting from the command line."""
    name, separator, value = text.partition("=")
    if not separator:
        raise _invalid(text, "expected NAME=VALUE, such as workers=4")
    if not value:
        raise _invalid(text, 'the value is empty; use null to unset it, "" for an empty string')
    path = _steps(SHORT.get(name, name))
    if len(path) < 2 or path[0] not in _SETTABLE:
        known = ", ".join(SHORT)
        raise _invalid(
            text, f"unknown field; use {known}, or a path that starts with spec or metadata"
        )
    return Setting(text, path, value)


def _steps(path: str) -> tuple[str, ...]:
    """The names and indexes of a path; none if it is malformed."""
    found, end = list[str](), 0
    while match := _STEP.match(path, end):
        found.append(match[1] or match[2])
        end = match.end()
    return tuple(found) if end == len(path) else ()


def _apply(setting: Setting, job: Manifest) -> None:
    *parents, last = setting.path
    place = _Place(job, _schema_of(job), "")
    for name in parents:
        place = _step(place, name, setting)
    below = _below(place, last, setting)
    key = _index(place, last, setting) if isinstance(place.value, list) else last
    place.value[key] = _value(setting, below.schema)


def _step(place: _Place, name: str, setting: Setting) -> _Place:
    """One level deeper. Missing objects are created, missing items are not."""
    below = _below(place, name, setting)
    if isinstance(place.value, list):
        inner = place.value[_index(place, name, setting)]
    else:
        inner = place.value.get(name)
        if inner is None:
            inner = place.value[name] = [] if below.schema.get("type") == "array" else {}
    if not isinstance(inner, dict | list):
        raise _invalid(setting.text, f"{below.text} is not an object and has no fields")
    return below._replace(value=inner)


def _below(place: _Place, name: str, setting: Setting) -> _Place:
    """What the schema says about a field or an item, without its value."""
    if isinstance(place.value, list):
        return _Place(None, place.schema.get("items", schema.OPEN), f"{place.text}[{name}]")
    text = f"{place.text}.{name}" if place.text else name
    known, others = _fields(place)
    inner = known.get(name, others)
    if inner is None:
        raise _invalid(setting.text, f"unknown field {text}{_hint(name, known)}")
    return _Place(None, inner, text)


def _fields(place: _Place) -> tuple[dict[str, Schema], Schema | None]:
    """The fields that an object has, and what any other name means; None if there is no other."""
    others = place.schema.get("additionalProperties")
    if place.text.endswith(f".{_ROLES}") and others:
        return {role.value: others for role in ReplicaType}, None
    is_open = "x-kubernetes-preserve-unknown-fields" in place.schema
    if others is None and is_open and place.text != "metadata":
        others = schema.OPEN
    return place.schema.get("properties", {}), others


def _hint(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 — only after a typing error

    similar = get_close_matches(name, [*known], n=1)
    return f"; did you mean {similar[0]}?" if similar else ""


def _index(place: _Place, text: str, setting: Setting) -> int:
    items: list[Any] = place.value
    if text.isdecimal() and int(text) < len(items):
        return int(text)
    raise _invalid(
        setting.text, f"{place.text} has {counted(len(items), 'item')}, counted from 0; no [{text}]"
    )


def _value(setting: Setting, known: Schema) -> Any:
    """The value as YAML; where the schema wants a string, `5` and `true` are strings."""
    try:
        value = yaml.safe_load(setting.value)
    except yaml.YAMLError as error:
        raise _invalid(setting.text, "the value is not valid YAML") from error
    is_text = known.get("type") == "string" and not isinstance(value, str | None)
    return setting.value if is_text else value


def _schema_of(job: Manifest) -> Schema:
    version = str(job.get("apiVersion")).removeprefix(f"{GROUP}/")
    if version == VERSION:
        return schema.job()
    from mpi_operator.api.versions import OLD_VERSIONS  # noqa: PLC0415 — few files need them
    from mpi_operator.api.versions import schema as old_schemas  # noqa: PLC0415

    # An unknown version is reported when the job is decoded.
    return old_schemas.job(version) if version in OLD_VERSIONS else schema.OPEN


def _invalid(setting: str, why: str) -> InvalidInput:
    return InvalidInput(f"invalid --set {setting}: {why}")
