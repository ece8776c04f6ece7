"""Writes the schema of pod templates, as an API server of the development cluster reports it.

python -m scripts.pod_template_schema

Run it manually when `tools/` moves to another version of Kubernetes. A CRD cannot refer to other
schemas, so every reference is resolved; descriptions are dropped, because with them the CRD would
be too large for `kubectl apply`.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

from devcluster.control_plane import ControlPlane
from mpi_operator.kube import config
from mpi_operator.kube.http import HttpClient

TARGET = Path(__file__).parents[1] / "src/mpi_operator/api/pod_template.json"

Schema = dict[str, Any]

_INT_OR_STRING: Schema = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
_STRINGS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}

# Schemas that resolving references would get wrong or make too large.
_SPECIAL: dict[str, Schema] = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": _INT_OR_STRING,
    "io.k8s.apimachinery.pkg.api.resource.Quantity": _INT_OR_STRING
    | {
        "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
        r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
    },
    # An embedded object has only the metadata that its author may set.
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {
        "type": "object",
        "properties": {
            "annotations": _STRINGS,
            "finalizers": {"type": "array", "items": {"type": "string"}},
            "labels": _STRINGS,
            "name": {"type": "string"},
            "namespace": {"type": "string"},
        },
    },
}
_KEPT = (
    "type",
    "format",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
)


def pod_template(openapi: Schema) -> Schema:
    """The structural schema of a pod template."""
    schemas = openapi["components"]["schemas"]
    return _resolved(schemas["io.k8s.api.core.v1.PodTemplateSpec"], schemas)


def _resolved(schema: Schema, schemas: dict[str, Schema]) -> Schema:
    if name := _reference(schema):
        return _SPECIAL.get(name) or _resolved(schemas[name], schemas)
    resolved = {key: schema[key] for key in _KEPT if key in schema}
    if "enum" in schema:
        # In pods an empty string means "not given", so in templates, too.
        resolved["enum"] = sorted({"", *schema["enum"]})
    if "properties" in schema:
        resolved["properties"] = {
            name: _resolved(field, schemas) for name, field in schema["properties"].items()
        }
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            resolved[inner] = _resolved(schema[inner], schemas)
    return _with_default_keys(resolved, schema, schemas)


def _reference(schema: Schema) -> str:
    # A reference with a default beside it is wrapped in an allOf of one.
    target = schema.get("allOf", [schema])[0].get("$ref", "")
    return str(target).rsplit("/", 1)[-1]


def _with_default_keys(resolved: Schema, schema: Schema, schemas: dict[str, Schema]) -> Schema:
    """The schema with defaults for optional keys of list maps, which need one.

    No other field gets one: a template is stored as written, and pods get their own defaults.
    """
    for key in schema.get("x-kubernetes-list-map-keys", ()):
        if key not in resolved["items"].get("required", ()):
            original = schemas[_reference(schema["items"])]["properties"][key]
            resolved["items"]["properties"][key]["default"] = original["default"]
    return resolved


async def _openapi(kubeconfig: Path) -> Schema:
    async with HttpClient(config.load(kubeconfig=kubeconfig)) as client:
        schema: Schema = json.loads(await client.raw("/openapi/v3/api/v1"))
        return schema


def main() -> None:
    with ControlPlane() as control_plane:
        openapi = asyncio.run(_openapi(control_plane.kubeconfig()))
    text = json.dumps(pod_template(openapi), sort_keys=True, separators=(",", ":")) + "\n"
    TARGET.write_text(text)
    print(f"wrote {TARGET.name}: {len(text)} bytes")


if __name__ == "__main__":
    main()
