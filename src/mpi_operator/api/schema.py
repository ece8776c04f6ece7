"""The schema of an MPIJob, made from its types: what `conformance` checks and the API server knows.

Pod templates have the schema of the Kubernetes API server that `scripts/pod_template_schema.py`
asked. The rest follows from `types`, with the rules of `cel`.
"""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import inspect

from . import cel, docs, types

Schema: TypeAlias = dict[str, Any]

# Types with a field for each role; in the API they are maps, and other keys are let be.
_BY_ROLE: Mapping[type, type[msgspec.Struct]] = {
    types.ReplicaSpecs: types.ReplicaSpec,
    types.ReplicaStatuses: types.ReplicaStatus,
}
# What must be given although the type has something to put there.
_REQUIRED: Mapping[type, tuple[str, ...]] = {
    types.MPIJob: ("spec",),
    types.MPIJobSpec: ("mpiReplicaSpecs",),
}
_OPEN: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@cache
def job() -> Schema:
    """The schema of a job without documentation, to check manifests with."""
    schema = _Schemas(with_docs=False).of(types.MPIJob)
    schema["properties"] |= {
        "apiVersion": {"type": "string", "enum": [types.API_VERSION]},
        "kind": {"type": "string", "enum": [types.KIND]},
    }
    schema["properties"]["metadata"]["x-kubernetes-preserve-unknown-fields"] = True
    return schema


def served_job() -> Schema:
    """The schema of a job as the API server wants it: documented, with the server's metadata."""
    schema = _Schemas(with_docs=True).of(types.MPIJob)
    name = {"type": "string", "maxLength": 253}  # a bound, for the cost of the rules about it
    schema["properties"] |= {
        "apiVersion": {"type": "string", "description": f"Always `{types.API_VERSION}`."},
        "kind": {"type": "string", "description": f"Always `{types.KIND}`."},
        "metadata": {"type": "object", "properties": {"name": name}},
    }
    return schema


@cache
def pod_template() -> Schema:
    """The schema of a pod template."""
    # Every `mpijob run` waits for this: importlib.resources and json take five times as long.
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
    """From types to schemas."""

    def __init__(self, *, with_docs: bool) -> None:
        self._with_docs = with_docs

    def of(self, cls: type[msgspec.Struct]) -> Schema:
        """The schema of a struct, with the rules about it."""
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
        if self._with_docs and (text := docs.field_docs(cls).get(field.name)):
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


def _is_worth_storing(default: object) -> bool:
    """Whether the server should write a default into jobs. Empty strings and zeros tell nobody."""
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
