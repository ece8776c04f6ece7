"""The OpenAPI schema of an MPIJob, generated from `types` and the rules in `cel`.

`schema_validation` validates with it, and the CRD contains it. The schema of pod templates is
Kubernetes' own, as `scripts/pod_template_schema.py` got it from an API server.
"""

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from inspect import cleandoc, getsource
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import inspect

from . import cel, types

Schema: TypeAlias = dict[str, Any]

# Types with a field for each role. In the API they are maps that accept other keys, too.
_BY_ROLE: Mapping[type, type[msgspec.Struct]] = {
    types.ReplicaSpecs: types.ReplicaSpec,
    types.ReplicaStatuses: types.ReplicaStatus,
}
# Fields that are required although their type has a default.
_REQUIRED: Mapping[type, tuple[str, ...]] = {
    types.MPIJob: ("spec",),
    types.MPIJobSpec: ("mpiReplicaSpecs",),
}
_OPEN: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@cache
def job() -> Schema:
    """The schema that manifests are validated against, without descriptions."""
    schema = _Schemas(with_docs=False).of(types.MPIJob)
    schema["properties"] |= {
        "apiVersion": {"type": "string", "enum": [types.API_VERSION]},
        "kind": {"type": "string", "enum": [types.KIND]},
    }
    schema["properties"]["metadata"]["x-kubernetes-preserve-unknown-fields"] = True
    return schema


def served_job() -> Schema:
    """The schema for the CRD: with descriptions, and the metadata as the API server wants it."""
    schema = _Schemas(with_docs=True).of(types.MPIJob)
    name = {"type": "string", "maxLength": 253}  # bounds the cost of its CEL rules
    schema["properties"] |= {
        "apiVersion": {"type": "string", "description": f"Always `{types.API_VERSION}`."},
        "kind": {"type": "string", "description": f"Always `{types.KIND}`."},
        "metadata": {"type": "object", "properties": {"name": name}},
    }
    return schema


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


_KUBERNETES: Mapping[str, Callable[[], Schema]] = {
    "PodTemplate": pod_template,
    "LabelSelector": _label_selector,
    "Quantity": _quantity,
}


class _Schemas:
    """Generates schemas from types."""

    def __init__(self, *, with_docs: bool) -> None:
        self._with_docs = with_docs

    def of(self, cls: type[msgspec.Struct]) -> Schema:
        """The schema of a struct, with its CEL rules."""
        return self._value(inspect.type_info(cls))

    def _struct(self, info: inspect.StructType) -> Schema:
        rules = cel.RULES.get(info.cls)
        return self._shape(info) | ({"x-kubernetes-validations": rules} if rules else {})

    def _shape(self, info: inspect.StructType) -> Schema:
        cls, fields = info.cls, info.fields
        if cls in _BY_ROLE:
            return {"type": "object", "additionalProperties": self.of(_BY_ROLE[cls])}
        schema: Schema = {
            "type": "object",
            "properties": dict(self._field(cls, field) for field in fields),
        }
        if required := [*_REQUIRED.get(cls, ()), *(f.encode_name for f in fields if f.required)]:
            schema["required"] = required
        return schema

    def _field(self, cls: type[msgspec.Struct], field: inspect.Field) -> tuple[str, Schema]:
        schema = dict(self._value(field.type))
        if self._with_docs and (text := field_docs(cls).get(field.name)):
            schema = {"description": text} | schema
        if _is_worth_storing(field.default):
            schema["default"] = msgspec.to_builtins(field.default)  # no enum: it becomes YAML
        return field.encode_name, schema

    def _value(self, info: inspect.Type) -> Schema:
        match info:
            case inspect.Metadata(extra={"schema": name}):
                return _KUBERNETES[name]()
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
                return dict(_OPEN)
            case inspect.DictType(value_type=inner):
                return {"type": "object", "additionalProperties": self._value(inner)}
            case _:
                return _scalar(info)


@cache
def field_docs(cls: type) -> dict[str, str]:
    """The docstring below each field of a class and its bases, from the source.

    Python does not keep these strings.
    """
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__ == cls.__module__:
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
