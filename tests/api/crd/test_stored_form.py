"""The conversion knows what the API server stores."""

from typing import Any

import pytest

from mpi_operator.api.conversion.stored_form import stored_form
from mpi_operator.kube.http import HttpClient
from tests.support.mpijobs import MPIJOBS, changed, mpijob

WORKER = "spec.mpiReplicaSpecs.Worker"
FIRST = f"{WORKER}.template.spec.containers.0"


@pytest.mark.parametrize(
    ("place", "value"),
    [
        pytest.param("spec.slotsPerWorker", 1, id="defaults"),
        pytest.param("spec.runPolicy", {}, id="defaults of an empty object"),
        pytest.param("spec.slotsPerWorker", None, id="null with a default"),
        pytest.param("spec.runPolicy", {"backoffLimit": None}, id="null without a default"),
        pytest.param("spec.unknown", {"a": 1}, id="an unknown field"),
        pytest.param(f"{FIRST}.unknown", 1, id="an unknown field of a container"),
        pytest.param(f"{FIRST}.ports", [{"containerPort": 22}], id="a default of an item"),
        pytest.param(
            f"{FIRST}.ports", [{"containerPort": 22, "protocol": None}], id="null in an item"
        ),
        pytest.param(
            f"{FIRST}.resources", {"limits": {"cpu": 1, "memory": None}}, id="null in a map"
        ),
        pytest.param(
            f"{WORKER}.template.metadata",
            {"name": "a", "uid": "b", "labels": {"c": "d"}},
            id="metadata of a template",
        ),
        pytest.param(
            f"{WORKER}.template.spec.imagePullSecrets", [{}], id="a default that is empty"
        ),
    ],
)
async def test_the_server_stores_it(client: HttpClient, namespace: str, place: str, value: Any):
    job = changed(mpijob("pi", namespace), place, value)
    stored = await client.create(MPIJOBS, job)
    assert stored["spec"] == stored_form(job)["spec"]
