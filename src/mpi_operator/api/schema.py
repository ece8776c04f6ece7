"""The OpenAPI schema of an MPIJob, generated from `types` and the rules in `cel`.

`schema_validation` validates with it, and the CRD contains it. The schema of pod templates is
Kubernetes' own, as `scripts/pod_template_schema.py` got it from an API server. The schemas of older
versions are in `versions.schema`.
"""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from inspect import cleandoc, getsource
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import inspect

from . import cel, types

Schema: TypeAlias = dict[str, Any]

# Types with a field for each role, and the type of a role. In the API they are maps that accept
# other keys, too.
BY_ROLE: Mapping[type, type[msgspec.Struct]] = {
    types.ReplicaSpecs: types.ReplicaSpec,
    types.ReplicaStatuses: types.ReplicaStatus,
}
# Fields that are required although their type has a default.
_REQUIRED: Mapping[type, tuple[str, ...]] = {
    types.MPIJob: ("spec",),
    types.MPIJobSpec: ("mpiReplicaSpecs",),
}
UNKNOWN_FIELDS: Schema = {"x-kubernetes-preserve-unknown-fields": True}
OPEN: Schema = {"type": "object"} | UNKNOWN_FIELDS


@cache
def job() -> Schema:
    """The schema that manifests are validated against, without descriptions."""
    return validated(Generator(cel.RULES, BY_ROLE).of(types.MPIJob), types.VERSION)


def served_job() -> Schema:
    """The schema for the CRD: with descriptions, and the metadata as the API server wants it."""
    generator = Generator(cel.RULES, BY_ROLE, with_docs=True)
    return served(generator.of(types.MPIJob), types.VERSION)


def validated(schema: Schema, version: str) -> Schema:
    """A job's schema with the type and the metadata that a manifest has."""
    properties = schema["properties"]
    metadata = properties["metadata"] | UNKNOWN_FIELDS
    api_version = {"type": "string", "enum": [f"{types.GROUP}/{version}"]}
    kind = {"type": "string", "enum": [types.KIND]}
    own = {"apiVersion": api_version, "kind": kind, "metadata": metadata}
    return schema | {"properties": properties | own}


def served(schema: Schema, version: str) -> Schema:
    """A job's schema with the type and the metadata that a CRD has."""
    name = {"type": "string", "maxLength": 253}  # bounds the cost of its CEL rules
    own = {
        "apiVersion": {"type": "string", "description": f"Always `{types.GROUP}/{version}`."},
        "kind": {"type": "string", "description": f"Always `{types.KIND}`."},
        "metadata": {"type": "object", "properties": {"name": name}},
    }
    return schema | {"properties": schema["properties"] | own}


@cache
def pod_template() -> Schema:
    """The schema of a pod template."""
    # Every `mpijob run` waits for this; importlib.resources and json take five times as long.
    text = Path(__file__).with_name("pod_template.json").read_bytes()
    schema: Schema = msgspec.json.decode(text)
    return schema


def _label_selector() -> Schema:
    constraints = pod_template()["properties"]["spec"]["properties"]["topologySpreadConstraints"]
    selector: Schema = constraints["items"]["properties"]["labelSelector"]
    return selector


def _quantity() -> Schema:
    quantity: Schema = pod_template()["properties"]["spec"]["properties"]["overhead"][
        "additionalProperties"
    ]
    return quantity


KUBERNETES: Mapping[str, Callable[[], Schema]] = {
    "PodTemplate": pod_template,
    "LabelSelector": _label_selector,
    "Quantity": _quantity,
}


@dataclass(frozen=True)
class Generator:
    """Generates schemas from types."""

    rules: Mapping[type, list[cel.Rule]]
    by_role: Mapping[type, type[msgspec.Struct]]
    kubernetes: Mapping[str, Callable[[], Schema]] = field(default_factory=lambda: KUBERNETES)
    with_docs: bool = False
    is_open: bool = False  # whether objects accept unknown fields
    allows_empty: bool = False  # whether an empty choice means that there is none, as in Go

    def of(self, cls: type[msgspec.Struct]) -> Schema:
        """The schema of a struct, with its CEL rules."""
        return self._value(inspect.type_info(cls))

    def _struct(self, info: inspect.StructType) -> Schema:
        rules = self.rules.get(info.cls)
        return self._shape(info) | ({"x-kubernetes-validations": rules} if rules else {})

    def _shape(self, info: inspect.StructType) -> Schema:
        cls, fields = info.cls, info.fields
        if cls in self.by_role:
            return {"type": "object", "additionalProperties": self.of(self.by_role[cls])}
        schema: Schema = {
            "type": "object",
            "properties": dict(self._field(cls, field) for field in fields),
        }
        if required := [*_REQUIRED.get(cls, ()), *(f.encode_name for f in fields if f.required)]:
            schema["required"] = required
        return schema | (UNKNOWN_FIELDS if self.is_open else {})

    def _field(self, cls: type[msgspec.Struct], field: inspect.Field) -> tuple[str, Schema]:
        schema = dict(self._value(field.type))
        if self.with_docs and (text := field_docs(cls).get(field.name)):
            schema = {"description": text} | schema
        if _is_worth_storing(field.default):
            schema["default"] = msgspec.to_builtins(field.default)  # no enum: it becomes YAML
        return field.encode_name, schema

    def _value(self, info: inspect.Type) -> Schema:
        match info:
            case inspect.Metadata(extra={"schema": name}):
                return self.kubernetes[name]()
            case inspect.Metadata(type=inner, extra_json_schema=extra):
                return self._value(inner) | (extra or {})
            case inspect.UnionType(types=members):
                (inner,) = (m for m in members if not isinstance(m, inspect.NoneType))
                return self._value(inner)
            case inspect.StructType():
                return self._struct(info)
            case inspect.VarTupleType(item_type=inner):
                return {"type": "array", "items": self._value(inner)}
            case inspect.DictType(value_type=inspect.AnyType()):
                return dict(OPEN)
            case inspect.DictType(value_type=inner):
                return {"type": "object", "additionalProperties": self._value(inner)}
            case inspect.EnumType() if self.allows_empty:
                choices = _scalar(info)
                return choices | {"enum": [*choices["enum"], ""]}
            case _:
                return _scalar(info)


@cache
def field_docs(cls: type) -> dict[str, str]:
    """The docstring below each field of a class and its bases, from the source.

    Python does not keep these strings.
    """
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if issubclass(base, types.Part):
            docs.update(_own_docs(base))
    return docs


def _own_docs(cls: type) -> Iterator[tuple[str, str]]:
    tree = ast.parse(getsource(cls)).body[0]
    assert isinstance(tree, ast.ClassDef)
    for statement, following in pairwise(tree.body):
        match statement, following:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, cleandoc(text).replace("\n", " ")


def _is_worth_storing(default: object) -> bool:
    """Whether the server should write a default into jobs: not if it is empty or zero."""
    return isinstance(default, bool) or (isinstance(default, int | str) and bool(default))


def _scalar(info: inspect.Type) -> Schema:
    match info:
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.IntType(ge=minimum, le=maximum):
            limits = {"minimum": minimum, "maximum": maximum}
            return {"type": "integer"} | {k: v for k, v in limits.items() if v is not None}
        case inspect.StrType():
            return {"type": "string"}
        case inspect.DateTimeType():
            return {"type": "string", "format": "date-time"}
        case inspect.EnumType(cls=cls):
            return {"type": "string", "enum": [str(member) for member in cls]}
        case _:
            raise TypeError(f"{info} has no schema")
