"""The reference of an MPIJob's fields in each version, which `make generate` writes."""

import sys
from collections.abc import Iterator

import yaml

from mpi_operator.api import schema, types
from mpi_operator.api.schema import Schema
from mpi_operator.api.versions import OLD_VERSIONS
from mpi_operator.api.versions import schema as old_schemas


def text() -> str:
    """Every field of a job: v2beta1 first, then the older versions."""
    columns = "| field | type | default | meaning |\n|---|---|---|---|\n"
    rows = (
        f"| `{path}` | {_kind(field)} | {_default(field)} | {field['description']} |\n"
        for path, field in _fields(schema.served_job())
    )
    hub = f"# The fields of an MPIJob (`{types.API_VERSION}`)\n\n{columns}{''.join(rows)}"
    return hub + "".join(map(_old_version, OLD_VERSIONS))


def _old_version(version: str) -> str:
    purpose = sys.modules[OLD_VERSIONS[version].__module__].__doc__
    columns = "| field | type | meaning |\n|---|---|---|\n"
    rows = (
        f"| `{path}` | {_kind(field)} | {field['description']} |\n"
        for path, field in _fields(old_schemas.served_job(version))
    )
    return f"\n## `{types.GROUP}/{version}`\n\n{purpose}\n\n{columns}{''.join(rows)}"


def _fields(parent: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Every field with a description below a schema, with its path; a pod template is one field."""
    for name, field in parent.get("properties", {}).items():
        inner = f"{path}.{name}" if path else name
        if "description" in field:
            yield inner, field
            yield from _fields(field, inner)
    if below := parent.get("additionalProperties") or parent.get("items"):
        yield from _fields(below, f"{path}[]")


def _kind(field: Schema) -> str:
    kind = " or ".join(f"`{value}`" for value in field.get("enum", ()) if value) or field["type"]
    return f"{kind}, at least {field['minimum']}" if "minimum" in field else kind


def _default(field: Schema) -> str:
    return f"`{yaml.safe_dump(field['default']).split()[0]}`" if "default" in field else ""
