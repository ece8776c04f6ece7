"""Server-side apply by two managers in two versions."""

import pytest

from mpi_operator.kube import errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import Manifest
from tests.support.mpijobs import changed
from tests.support.versions import RESOURCES, v1, workers, workers_patch

V1, V2BETA1 = RESOURCES["v1"], RESOURCES["v2beta1"]


def partial(namespace: str, name: str, fields: Manifest) -> Manifest:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": V2BETA1.api_version, "kind": "MPIJob", "metadata": metadata, **fields}


async def test_each_manager_keeps_what_is_its_own(client: HttpClient, namespace: str):
    job = v1("two-managers", namespace, slotsPerWorker=2, cleanPodPolicy="All")
    suspended = partial(namespace, "two-managers", {"spec": {"runPolicy": {"suspend": True}}})
    await client.apply(V1, job, manager="author")
    await client.apply(V2BETA1, suspended, manager="queue")
    again = changed(job, "spec.mpiReplicaSpecs.Worker.replicas", 3)
    applied = await client.apply(V1, again, manager="author")
    assert applied["spec"]["runPolicy"]["suspend"] is True
    assert applied["spec"]["cleanPodPolicy"] == "All"
    assert workers(applied) == 3


async def test_a_field_of_another_manager_is_a_conflict_in_every_version(
    client: HttpClient, namespace: str
):
    await client.apply(V1, v1("conflict", namespace), manager="author")
    scaled = partial(namespace, "conflict", workers_patch("v2beta1", 5))
    with pytest.raises(errors.Conflict, match="author"):
        await client.apply(V2BETA1, scaled, manager="scaler")
    applied = await client.apply(V2BETA1, scaled, manager="scaler", force=True)
    assert workers(applied) == 5
    with pytest.raises(errors.Conflict, match="scaler"):
        await client.apply(V1, v1("conflict", namespace), manager="author")


async def test_a_field_that_its_manager_no_longer_applies_is_removed(
    client: HttpClient, namespace: str
):
    job = v1("given-up", namespace, slotsPerWorker=2, runPolicy={"backoffLimit": 3})
    await client.apply(V1, job, manager="author")
    applied = await client.apply(V1, v1("given-up", namespace), manager="author")
    assert "slotsPerWorker" not in applied["spec"]
    assert "backoffLimit" not in applied["spec"].get("runPolicy", {})
