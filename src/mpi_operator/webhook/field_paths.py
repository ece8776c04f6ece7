"""Paths of a converted job in the terms of the version that the job is written in."""

from collections.abc import Hashable, Iterable

from mpi_operator.api import annotations, types
from mpi_operator.api.conversion import own_path
from mpi_operator.api.field_errors import FieldError, Path
from mpi_operator.api.schema import Schema
from mpi_operator.api.schema import job as hub_schema
from mpi_operator.api.versions import schema as old_schemas

# The only annotation that older versions have a field for, and that may be warned about.
_MAIN_CONTAINER = ("metadata", "annotations", annotations.MAIN_CONTAINER)


def translated(version: str, errors: Iterable[FieldError]) -> list[FieldError]:
    """The errors about a hub's fields as errors about the version's own, each once."""
    own = (FieldError(_path(version, error.path), error.message) for error in errors)
    return list(dict.fromkeys(own))


def schema_of(version: str) -> Schema:
    """The schema with every field of a version."""
    return hub_schema() if version == types.VERSION else old_schemas.job(version)


def _path(version: str, hub: Path) -> Path:
    if version == types.VERSION:
        return hub
    keys = ("spec", "mainContainer") if hub.keys == _MAIN_CONTAINER else hub.keys
    return written(own_path(version, keys), schema_of(version))


def written(keys: tuple[Hashable, ...], schema: Schema) -> Path:
    """The path of these keys: as a field where the schema has one, else as an entry."""
    path = Path()
    for key in keys:
        fields = schema.get("properties", {})
        is_field = isinstance(key, str) and (key in fields or not _has_entries(schema))
        path = path.field(str(key)) if is_field else path.entry(key)
        inner = schema.get("additionalProperties") or schema.get("items") or {}
        schema = fields.get(key, inner)
    return path


def _has_entries(schema: Schema) -> bool:
    return "additionalProperties" in schema or "items" in schema
