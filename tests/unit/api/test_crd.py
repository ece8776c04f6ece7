"""The CRD and the schemas in it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from mpi_operator.api import schema, types
from mpi_operator.api.crd import custom_resource_definition

FILE = Path(__file__).parents[3] / "deploy/crds/mpijobs.kubeflow.org.yaml"
ANNOTATION_LIMIT = 262_144
STRUCTS = [
    value
    for value in vars(types).values()
    if isinstance(value, type) and issubclass(value, types.Part)
]


def test_the_file_is_what_the_types_say():
    assert yaml.safe_load(FILE.read_text()) == custom_resource_definition()


def test_it_fits_into_an_annotation_with_room_for_older_versions():
    # `kubectl apply` keeps the whole object in an annotation, as compact JSON.
    size = len(json.dumps(custom_resource_definition(), separators=(",", ":")))
    assert size < ANNOTATION_LIMIT / 2


def test_callers_may_change_their_copy():
    (version,) = custom_resource_definition()["spec"]["versions"]
    version["additionalPrinterColumns"].clear()
    version["schema"]["openAPIV3Schema"]["x-kubernetes-validations"].clear()
    assert custom_resource_definition() == yaml.safe_load(FILE.read_text())


@pytest.mark.parametrize("cls", STRUCTS)
def test_every_field_of_the_api_is_documented(cls):
    undocumented = {types.Metadata, types.ReplicaSpecs, types.ReplicaStatuses}
    names = set() if cls in undocumented else {f.name for f in msgspec.structs.fields(cls)}
    assert names - {"metadata"} <= schema.field_docs(cls).keys()


def test_pod_templates_have_no_descriptions():
    assert not [each for each in schemas(schema.pod_template()) if "description" in each]


def test_pod_templates_are_structural():
    allowed = {
        "type",
        "format",
        "required",
        "properties",
        "additionalProperties",
        "items",
        "enum",
        "default",
        "anyOf",
        "pattern",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type",
    }
    assert {key for each in schemas(schema.pod_template()) for key in each} <= allowed


def test_only_keys_of_lists_have_defaults_in_pod_templates():
    defaults = [each["default"] for each in schemas(schema.pod_template()) if "default" in each]
    assert set(defaults) == {"", "TCP"}


def test_a_type_without_a_schema_is_refused():
    with pytest.raises(TypeError, match="has no schema"):
        schema._scalar(msgspec.inspect.type_info(float))


def schemas(root: schema.Schema) -> Iterator[dict[str, Any]]:
    """A schema and every schema inside it."""
    yield root
    for inner in (*root.get("properties", {}).values(), *_inner(root)):
        yield from schemas(inner)


def _inner(root: schema.Schema) -> list[schema.Schema]:
    return [root[key] for key in ("items", "additionalProperties") if key in root]
