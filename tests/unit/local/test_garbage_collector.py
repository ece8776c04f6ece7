"""Owners and their dependents."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_operator.kube import errors
from mpi_operator.kube.client import DeleteOptions, Propagation
from mpi_operator.kube.resources import CONFIG_MAPS, PODS, SECRETS
from tests.unit.local.clusters import a_cluster, named, owned, pod

FOREGROUND, ORPHAN = Propagation.FOREGROUND, Propagation.ORPHAN


async def there(cluster, resource=CONFIG_MAPS):
    listed = await cluster.list(resource)
    return {each["metadata"]["name"]: each["metadata"] for each in listed.items}


@pytest.fixture
def cluster():
    return a_cluster()


async def test_a_chain_of_dependents_is_deleted_to_its_end(cluster):
    owner = await cluster.create(CONFIG_MAPS, named("c0"))
    for number in range(1, 2000):
        owner = await cluster.create(CONFIG_MAPS, owned(f"c{number}", owner))
    await cluster.delete(CONFIG_MAPS, "c0", "here")
    assert await there(cluster) == {}


async def test_an_object_with_another_owner_stays_and_drops_the_reference(cluster):
    one = await cluster.create(CONFIG_MAPS, named("one"))
    two = await cluster.create(CONFIG_MAPS, named("two"))
    await cluster.create(CONFIG_MAPS, owned("child", one, two))
    await cluster.delete(CONFIG_MAPS, "one", "here")
    [left] = (await there(cluster))["child"]["ownerReferences"]
    assert left["name"] == "two"


async def test_an_object_created_for_an_absent_owner_is_deleted(cluster):
    owner = await cluster.create(CONFIG_MAPS, named("owner"))
    await cluster.delete(CONFIG_MAPS, "owner", "here")
    created = await cluster.create(CONFIG_MAPS, owned("late", owner))
    assert created["metadata"]["uid"]
    assert await there(cluster) == {}


async def test_an_object_patched_to_an_absent_owner_is_deleted(cluster):
    owner = await cluster.create(CONFIG_MAPS, named("owner"))
    await cluster.create(CONFIG_MAPS, named("child"))
    await cluster.delete(CONFIG_MAPS, "owner", "here")
    references = owned("child", owner)["metadata"]["ownerReferences"]
    await cluster.patch(CONFIG_MAPS, "child", {"metadata": {"ownerReferences": references}}, "here")
    assert await there(cluster) == {}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"uid": "another"}, id="another uid"),
        pytest.param({"name": "another"}, id="another name"),
        pytest.param({"kind": "Secret"}, id="another kind"),
    ],
)
async def test_an_owner_must_match_its_reference(cluster, change):
    owner = await cluster.create(CONFIG_MAPS, named("owner"))
    child = owned("child", owner)
    child["metadata"]["ownerReferences"][0] |= change
    await cluster.create(CONFIG_MAPS, child)
    assert set(await there(cluster)) == {"owner"}


async def test_an_owner_in_another_namespace_does_not_count(cluster):
    owner = await cluster.create(CONFIG_MAPS, named("owner"))
    await cluster.create(CONFIG_MAPS, owned("child", owner, namespace="there"))
    assert set(await there(cluster)) == {"owner"}


async def test_an_owner_of_a_kind_that_is_not_served_keeps_its_dependents(cluster):
    stranger = {"apiVersion": "example.com/v1", "kind": "Stranger", "name": "s", "uid": "u"}
    await cluster.create(CONFIG_MAPS, named("child", ownerReferences=[stranger]))
    assert set(await there(cluster)) == {"child"}


async def test_a_running_pod_of_a_deleted_owner_has_its_grace_period(cluster):
    owner = await cluster.create(CONFIG_MAPS, named("owner"))
    running = pod("p", node="here")
    running["metadata"]["ownerReferences"] = owned("", owner)["metadata"]["ownerReferences"]
    await cluster.create(PODS, running)
    await cluster.delete(CONFIG_MAPS, "owner", "here")
    assert (await there(cluster, PODS))["p"]["deletionGracePeriodSeconds"] == 30


async def test_a_foreground_deletion_waits_for_blocking_dependents(cluster):
    owner = await cluster.create(CONFIG_MAPS, named("owner"))
    held = owned("held", owner, blocking=True, finalizers=["example.com/hold"])
    await cluster.create(CONFIG_MAPS, held)
    await cluster.create(CONFIG_MAPS, owned("free", owner, blocking=True))
    await cluster.delete(CONFIG_MAPS, "owner", "here", DeleteOptions(propagation=FOREGROUND))
    found = await there(cluster)
    assert set(found) == {"owner", "held"}
    assert found["owner"]["finalizers"] == ["foregroundDeletion"]
    await cluster.patch(CONFIG_MAPS, "held", {"metadata": {"finalizers": None}}, "here")
    assert await there(cluster) == {}


async def test_a_foreground_deletion_does_not_wait_for_other_dependents(cluster):
    owner = await cluster.create(CONFIG_MAPS, named("owner"))
    await cluster.create(CONFIG_MAPS, owned("held", owner, finalizers=["example.com/hold"]))
    await cluster.delete(CONFIG_MAPS, "owner", "here", DeleteOptions(propagation=FOREGROUND))
    assert set(await there(cluster)) == {"held"}


async def test_a_foreground_deletion_starts_with_the_grandchildren(cluster):
    owner = await cluster.create(CONFIG_MAPS, named("owner"))
    child = await cluster.create(CONFIG_MAPS, owned("child", owner, blocking=True))
    grandchild = owned("grandchild", child, blocking=True, finalizers=["example.com/hold"])
    await cluster.create(CONFIG_MAPS, grandchild)
    await cluster.delete(CONFIG_MAPS, "owner", "here", DeleteOptions(propagation=FOREGROUND))
    assert set(await there(cluster)) == {"owner", "child", "grandchild"}
    await cluster.patch(CONFIG_MAPS, "grandchild", {"metadata": {"finalizers": None}}, "here")
    assert await there(cluster) == {}


@pytest.mark.parametrize("propagation", list(Propagation))
async def test_a_cycle_of_owners_terminates(cluster, propagation):
    one = await cluster.create(CONFIG_MAPS, named("one"))
    two = await cluster.create(CONFIG_MAPS, owned("two", one, blocking=True))
    references = owned("", two, blocking=True)["metadata"]["ownerReferences"]
    await cluster.patch(CONFIG_MAPS, "one", {"metadata": {"ownerReferences": references}}, "here")
    await cluster.delete(CONFIG_MAPS, "one", "here", DeleteOptions(propagation=propagation))
    assert set(await there(cluster)) == ({"two"} if propagation is ORPHAN else set())


GRAPHS = st.lists(
    st.lists(st.tuples(st.integers(0, 7), st.booleans()), max_size=3), min_size=8, max_size=8
)


async def cluster_of(graph):
    """Objects 0 to 7, each owned by some others; cycles are welcome."""
    cluster = a_cluster()
    for number in range(len(graph)):
        await cluster.create(CONFIG_MAPS, named(f"c{number}"))
    for number, owners in enumerate(graph):
        references = []
        for owner, blocking in owners:
            found = await cluster.get(CONFIG_MAPS, f"c{owner}", "here")
            references += owned("", found, blocking=blocking)["metadata"]["ownerReferences"]
        change = {"metadata": {"ownerReferences": references}}
        await cluster.patch(CONFIG_MAPS, f"c{number}", change, "here")
    return cluster


async def delete_all(cluster, deletions):
    for number, propagation in deletions:
        try:
            await cluster.delete(
                CONFIG_MAPS, f"c{number}", "here", DeleteOptions(propagation=propagation)
            )
        except errors.NotFound:
            continue


def no_orphans(found):
    uids = {metadata["uid"] for metadata in found.values()}
    for metadata in found.values():
        owners = {each["uid"] for each in metadata.get("ownerReferences", ())}
        assert owners <= uids, "a reference to an owner that is gone"
        assert "deletionTimestamp" not in metadata, "an object that waits for ever"


@given(GRAPHS, st.lists(st.tuples(st.integers(0, 7), st.sampled_from(Propagation)), max_size=4))
def test_any_deletion_leaves_no_orphans_and_no_unfinished_deletion(graph, deletions):
    async def story():
        cluster = await cluster_of(graph)
        await delete_all(cluster, deletions)
        no_orphans(await there(cluster))

    asyncio.run(story())


def expected(graph, start):
    """What is left without `start`: objects that have no owners, or one that is left."""
    gone = {start}
    while True:
        more = {
            number
            for number, owners in enumerate(graph)
            if number not in gone and owners and all(owner in gone for owner, _ in owners)
        }
        if not more:
            return {f"c{number}" for number in range(len(graph))} - {f"c{n}" for n in gone}
        gone |= more


@given(GRAPHS, st.sampled_from([Propagation.BACKGROUND, Propagation.FOREGROUND]))
def test_exactly_the_objects_without_an_owner_left_are_deleted(graph, propagation):
    async def story():
        cluster = await cluster_of(graph)
        await delete_all(cluster, [(0, propagation)])
        assert set(await there(cluster)) == expected(graph, 0)

    asyncio.run(story())


async def test_owners_can_be_of_another_kind(cluster):
    owner = await cluster.create(CONFIG_MAPS, named("owner"))
    child = {**owned("child", owner), "data": {}}
    await cluster.create(SECRETS, child)
    await cluster.delete(CONFIG_MAPS, "owner", "here")
    assert await there(cluster, SECRETS) == {}
