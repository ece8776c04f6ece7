"""A job written in one version and used in another, for each pair: nothing is lost on the way."""

from contextlib import aclosing
from itertools import product

import pytest

from mpi_operator.api.conversion import VERSIONS
from mpi_operator.kube.client import Selector, WatchOptions
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import Manifest
from tests.support.mpijobs import changed
from tests.support.versions import RESOURCES, WRITTEN_IN, typical, workers, workers_patch

PAIRS = list(product(VERSIONS, VERSIONS))


@pytest.fixture(params=PAIRS, ids=lambda pair: f"written in {pair[0]}, used in {pair[1]}")
def pair(request: pytest.FixtureRequest) -> tuple[str, str]:
    found: tuple[str, str] = request.param
    return found


async def created(client: HttpClient, namespace: str, version: str, name: str) -> Manifest:
    return await client.create(RESOURCES[version], typical(version, name, namespace))


async def read(client: HttpClient, namespace: str, version: str, name: str) -> Manifest:
    return await client.get(RESOURCES[version], name, namespace)


async def test_every_way_of_reading_shows_the_same(client: HttpClient, namespace: str, pair):
    written, used = pair
    name = f"read-{written}-{used}"
    stored = await created(client, namespace, written, name)
    found = await read(client, namespace, used, name)
    assert workers(found) == 2
    assert found["metadata"].get("annotations", {}).get(WRITTEN_IN) == (
        None if written == used else written
    )
    only = Selector(fields=f"metadata.name={name}")
    (listed,) = (await client.list(RESOURCES[used], namespace, only)).items
    assert listed["spec"] == found["spec"]
    watched = await first_event(client, namespace, used, name)
    assert watched == found
    assert (await read(client, namespace, written, name))["spec"] == stored["spec"]


async def first_event(client: HttpClient, namespace: str, version: str, name: str) -> Manifest:
    """The job as a new watch shows it first."""
    options = WatchOptions(fields=f"metadata.name={name}")
    async with aclosing(client.watch(RESOURCES[version], namespace, options)) as events:
        async for event in events:
            return event.object
    raise AssertionError("no event")


async def test_a_merge_patch(client: HttpClient, namespace: str, pair):
    written, used = pair
    name = f"patch-{written}-{used}"
    before = await created(client, namespace, written, name)
    patched = await client.patch(RESOURCES[used], name, workers_patch(used, 3), namespace)
    assert workers(patched) == 3
    assert_only_workers_changed(before, await read(client, namespace, written, name), 3)


async def test_an_update_of_what_was_read(client: HttpClient, namespace: str, pair):
    written, used = pair
    name = f"update-{written}-{used}"
    before = await created(client, namespace, written, name)
    found = await read(client, namespace, used, name)
    await client.replace(RESOURCES[used], changed(found, "metadata.labels", {"a": "b"}))
    after = await read(client, namespace, written, name)
    assert after["metadata"]["labels"] == {"a": "b"}
    assert after["metadata"].get("annotations") == before["metadata"].get("annotations")
    assert after["metadata"]["generation"] == 1
    assert after["spec"] == before["spec"]


async def test_a_server_side_apply(client: HttpClient, namespace: str, pair):
    written, used = pair
    name = f"apply-{written}-{used}"
    before = await created(client, namespace, written, name)
    partial = {
        "apiVersion": RESOURCES[used].api_version,
        "kind": "MPIJob",
        "metadata": {"name": name, "namespace": namespace},
        **workers_patch(used, 4),
    }
    applied = await client.apply(RESOURCES[used], partial, manager="scaler", force=True)
    assert workers(applied) == 4
    assert_only_workers_changed(before, await read(client, namespace, written, name), 4)


async def test_a_scale(client: HttpClient, namespace: str, pair):
    written, used = pair
    name = f"scale-{written}-{used}"
    before = await created(client, namespace, written, name)
    scale = await client.get(RESOURCES[used], name, namespace, subresource="scale")
    assert scale["spec"] == {"replicas": 2}
    scale["spec"]["replicas"] = 5
    await client.replace(RESOURCES[used], scale, subresource="scale")
    assert_only_workers_changed(before, await read(client, namespace, written, name), 5)


def assert_only_workers_changed(before: Manifest, after: Manifest, number: int) -> None:
    assert workers(after) == number
    is_flat = before["apiVersion"].endswith("/v1alpha1")
    path = "spec.replicas" if is_flat else "spec.mpiReplicaSpecs.Worker.replicas"
    assert after["spec"] == changed(before, path, number)["spec"]
