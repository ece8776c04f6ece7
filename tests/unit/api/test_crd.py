"""The CRD and the schemas in it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from mpi_operator.api import schema, types
from mpi_operator.api.crd import custom_resource_definition, v2beta1_only
from mpi_operator.api.versions import OLD_VERSIONS, v1, v1alpha1, v1alpha2
from mpi_operator.api.versions import schema as old_schemas

DEPLOY = Path(__file__).parents[3] / "deploy"
FILE = DEPLOY / "crd/mpijobs.kubeflow.org.yaml"
ANNOTATION_LIMIT = 262_144
STRUCTS = {
    value
    for module in (types, v1, v1alpha2, v1alpha1)
    for value in vars(module).values()
    if isinstance(value, type) and issubclass(value, types.Part)
}
VERSIONS = {each["name"]: each for each in custom_resource_definition()["spec"]["versions"]}


def test_the_file_is_what_the_types_say():
    assert yaml.safe_load(FILE.read_text()) == custom_resource_definition()


def test_there_is_a_file_with_v2beta1_only():
    file = DEPLOY / "v2beta1-only/mpijobs.kubeflow.org.yaml"
    assert yaml.safe_load(file.read_text()) == v2beta1_only()


def test_v2beta1_is_the_same_in_both():
    assert v2beta1_only()["spec"]["versions"] == [VERSIONS["v2beta1"]]
    assert v2beta1_only()["spec"]["conversion"] == {"strategy": "None"}


def test_it_fits_into_an_annotation_with_room_to_grow():
    # `kubectl apply` keeps the whole object in an annotation, as compact JSON.
    size = len(json.dumps(custom_resource_definition(), separators=(",", ":")))
    assert size < ANNOTATION_LIMIT / 2


def test_callers_may_change_their_copy():
    for version in custom_resource_definition()["spec"]["versions"]:
        version["additionalPrinterColumns"].clear()
        version["schema"]["openAPIV3Schema"]["x-kubernetes-validations"].clear()
    assert custom_resource_definition() == yaml.safe_load(FILE.read_text())


# --- older versions


def test_all_versions_are_served_and_v2beta1_is_stored():
    assert [name for name, each in VERSIONS.items() if each["served"]] == [
        *("v2beta1", "v1", "v1alpha2", "v1alpha1")
    ]
    assert [name for name, each in VERSIONS.items() if each["storage"]] == ["v2beta1"]


def test_the_operator_converts_and_adds_its_own_ca():
    conversion = custom_resource_definition()["spec"]["conversion"]
    service = {"namespace": "mpi-operator", "name": "mpi-operator-webhook"}
    assert conversion == {
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {"service": service | {"path": "/convert", "port": 443}},
            "conversionReviewVersions": ["v1"],
        },
    }


@pytest.mark.parametrize(
    ("version", "is_deprecated"),
    [("v2beta1", False), ("v1", False), ("v1alpha2", True), ("v1alpha1", True)],
)
def test_only_alpha_versions_are_deprecated(version, is_deprecated):
    assert VERSIONS[version].get("deprecated", False) is is_deprecated
    assert ("use kubeflow.org/v2beta1" in str(VERSIONS[version])) is is_deprecated


@pytest.mark.parametrize("version", OLD_VERSIONS)
def test_old_versions_add_nothing(version):
    served = list(schemas(old_schemas.served_job(version)))
    assert not [each for each in served if "default" in each]


@pytest.mark.parametrize("version", OLD_VERSIONS)
def test_old_versions_drop_nothing_from_spec_and_status(version):
    fields = old_schemas.served_job(version)["properties"]
    # The selectors in a status are Kubernetes' own; v2beta1 prunes them in the same way.
    of_selectors = {"matchExpressions", "matchLabels"}, {"key", "operator", "values"}
    closed = [
        each["properties"].keys()
        for part in ("spec", "status")
        for each in schemas(fields[part])
        if "properties" in each and "x-kubernetes-preserve-unknown-fields" not in each
    ]
    assert [names for names in closed if names not in of_selectors] == []


@pytest.mark.parametrize("version", OLD_VERSIONS)
def test_warnings_know_every_field_of_an_old_version(version):
    open_fields = old_schemas.served_job(version)["properties"]["spec"]["properties"]
    known = old_schemas.job(version)["properties"]["spec"]
    assert known["properties"].keys() == open_fields.keys()
    assert "x-kubernetes-preserve-unknown-fields" not in known


@pytest.mark.parametrize(
    ("version", "field", "limits"),
    [
        pytest.param("v1", "slotsPerWorker", {"minimum": 0}, id="slots"),
        pytest.param(
            "v1", "cleanPodPolicy", {"enum": ["All", "None", "Running", ""]}, id="clean-up"
        ),
        pytest.param(
            "v1alpha2",
            "mpiDistribution",
            {"enum": ["OpenMPI", "IntelMPI", "MPICH", ""]},
            id="distribution",
        ),
        pytest.param("v1alpha1", "gpus", {"minimum": 1}, id="GPUs"),
        pytest.param("v1alpha1", "processingUnitsPerNode", {"minimum": 1}, id="units per node"),
        pytest.param("v1alpha1", "replicas", {"minimum": 0, "maximum": 20_000}, id="replicas"),
        pytest.param(
            "v1alpha1",
            "processingResourceType",
            {"enum": ["nvidia.com/gpu", "cpu", ""]},
            id="resource type",
        ),
    ],
)
def test_fields_of_old_versions_have_their_limits(version, field, limits):
    schema = old_schemas.served_job(version)["properties"]["spec"]["properties"][field]
    assert schema | limits == schema


# --- all versions


@pytest.mark.parametrize("cls", sorted(STRUCTS, key=str))
def test_every_field_of_the_api_is_documented(cls):
    is_undocumented = cls is types.Metadata or cls.__name__ in ("ReplicaSpecs", "ReplicaStatuses")
    names = set() if is_undocumented else {f.name for f in msgspec.structs.fields(cls)}
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
