"""What the API server would store of a job."""

import pytest

from mpi_operator.api.conversion.stored_form import Shape, pruned_and_defaulted, stored_form
from tests.unit.api.conversion.jobs import WORKER, at, edited, with_roles

SHAPE = Shape(
    {
        "type": "object",
        "properties": {
            "size": {"type": "integer", "default": 1},
            "name": {"type": "string"},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "ports": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"protocol": {"type": "string", "default": "TCP"}},
                },
            },
            "limit": {"x-kubernetes-int-or-string": True},
        },
    }
)


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        pytest.param({}, {"size": 1}, id="a default is added"),
        pytest.param({"size": None}, {"size": 1}, id="null is replaced by a default"),
        pytest.param({"size": 2}, {"size": 2}, id="a default does not replace a value"),
        pytest.param({"size": 1, "name": None}, {"size": 1}, id="null without a default goes"),
        pytest.param({"size": 1, "x": 1}, {"size": 1}, id="unknown fields go"),
        pytest.param(
            {"size": 1, "open": {"x": None}},
            {"size": 1, "open": {"x": None}},
            id="open objects stay",
        ),
        pytest.param(
            {"size": 1, "labels": {"a": "b", "c": None}},
            {"size": 1, "labels": {"a": "b"}},
            id="null in a map goes",
        ),
        pytest.param(
            {"size": 1, "ports": [{}, None, {"x": 1}]},
            {"size": 1, "ports": [{"protocol": "TCP"}, None, {"protocol": "TCP"}]},
            id="items get defaults, and null stays",
        ),
        pytest.param({"size": 1, "limit": "2Gi"}, {"size": 1, "limit": "2Gi"}, id="a quantity"),
        pytest.param({"size": "x"}, {"size": "x"}, id="a wrong type stays"),
        pytest.param({"size": {"a": 1}}, {"size": {}}, id="but for what is in it"),
        pytest.param({"size": [{"a": 1}, 2]}, {"size": [{}, 2]}, id="also in a list"),
    ],
)
def test_stored(value, stored):
    assert pruned_and_defaulted(value, SHAPE) == stored


def test_what_does_not_change_is_shared():
    job = stored_form(with_roles("v2beta1"))
    assert stored_form(job)["spec"] is job["spec"]


def test_a_job_gets_the_defaults_of_its_template():
    ports = f"{WORKER}.template.spec.containers.0.ports"
    stored = stored_form(edited(with_roles("v2beta1"), {ports: [{"containerPort": 22}]}))
    assert at(stored, ports) == [{"containerPort": 22, "protocol": "TCP"}]


def test_a_spec_of_null_is_none():
    assert "spec" not in stored_form({**with_roles("v2beta1"), "spec": None})
