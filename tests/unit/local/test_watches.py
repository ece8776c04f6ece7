"""Watches over time: how far back they start, their bookmarks, and how they end."""

import asyncio
from contextlib import aclosing, suppress

import pytest

from mpi_operator.kube import errors
from mpi_operator.kube.client import EventType, WatchOptions
from mpi_operator.kube.informer import Informer
from mpi_operator.kube.objects import Object
from mpi_operator.kube.resources import CONFIG_MAPS, PODS
from tests.unit.local.clusters import a_cluster, named, pod, virtual_now

pytestmark = pytest.mark.looptime


async def fill(cluster, count, beginning="c"):
    for number in range(count):
        await cluster.create(CONFIG_MAPS, named(f"{beginning}{number}"))


async def first_events(events, count):
    async with aclosing(events):
        return [await anext(events) for _ in range(count)]


async def test_a_version_older_than_the_cache_is_gone():
    cluster = a_cluster(watch_cache_size=2)
    await fill(cluster, 5)
    with pytest.raises(errors.Gone, match="too old resource version: 2"):
        await anext(cluster.watch(CONFIG_MAPS, options=WatchOptions(resource_version="2")))


async def test_the_cache_of_another_kind_does_not_matter():
    cluster = a_cluster(watch_cache_size=2)
    await cluster.create(PODS, pod("p"))
    await fill(cluster, 50)
    [event] = await first_events(cluster.watch(PODS, options=WatchOptions(resource_version="1")), 1)
    assert event.object["metadata"]["name"] == "p"


async def test_a_version_from_the_future_is_gone():
    with pytest.raises(errors.Gone, match="Too large resource version: 99"):
        await anext(a_cluster().watch(CONFIG_MAPS, options=WatchOptions(resource_version="99")))


async def test_an_invalid_version_is_a_bad_request():
    with pytest.raises(errors.BadRequest, match="invalid resource version"):
        await anext(a_cluster().watch(CONFIG_MAPS, options=WatchOptions(resource_version="x")))


async def test_a_watch_that_falls_behind_is_gone():
    cluster = a_cluster(watch_cache_size=2)
    events = cluster.watch(CONFIG_MAPS, options=WatchOptions(initial_events=True))
    async with aclosing(events):
        assert (await anext(events)).type is EventType.BOOKMARK
        await fill(cluster, 10)
        with pytest.raises(errors.Gone):
            await anext(events)


async def test_a_watch_without_a_version_starts_with_the_existing_objects():
    cluster = a_cluster()
    await fill(cluster, 2)
    events = await first_events(cluster.watch(CONFIG_MAPS), 2)
    assert [event.object["metadata"]["name"] for event in events] == ["c0", "c1"]


async def test_a_quiet_watch_gets_bookmarks():
    cluster = a_cluster()
    events = cluster.watch(CONFIG_MAPS, options=WatchOptions(resource_version="1"))
    waiting = asyncio.create_task(first_events(events, 1))
    await asyncio.sleep(30)
    await cluster.create(PODS, pod("p"))
    [bookmark] = await waiting
    assert bookmark.type is EventType.BOOKMARK
    assert bookmark.object["metadata"]["resourceVersion"] == "2"
    assert asyncio.get_running_loop().time() == 60


async def test_a_watch_ends_with_a_bookmark():
    cluster = a_cluster()
    await fill(cluster, 1)
    events = cluster.watch(CONFIG_MAPS, options=WatchOptions(resource_version="1", timeout=5))
    assert [event.type async for event in events] == [EventType.ADDED, EventType.BOOKMARK]
    assert asyncio.get_running_loop().time() == 5


async def test_a_fast_reader_does_not_starve_other_tasks():
    cluster = a_cluster()
    await fill(cluster, 1000)
    turns = 0

    async def count_turns():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count_turns())
    await first_events(cluster.watch(CONFIG_MAPS, options=WatchOptions(resource_version="1")), 1000)
    counting.cancel()
    assert turns >= 9


async def test_an_informer_lists_again_when_its_watch_is_gone():
    cluster = a_cluster(watch_cache_size=2)
    informer = Informer(cluster, CONFIG_MAPS, Object)
    running = asyncio.create_task(informer.run())
    await informer.synced()
    # All in one turn, so that the informer cannot keep up.
    for number in range(10):
        await_now(cluster.create(CONFIG_MAPS, named(f"late{number}")))
    await asyncio.sleep(60)
    assert {known.metadata.name for known in informer.store} == {f"late{n}" for n in range(10)}
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def await_now(coroutine):
    """Do something asynchronous without giving anybody else a turn."""
    with suppress(StopIteration):
        while True:
            coroutine.send(None)


async def test_a_timer_that_fires_early_by_less_than_a_tick_ends_a_watch():
    cluster = a_cluster(clock=virtual_now)
    # In ticks of a microsecond the last part of it never passes.
    events = cluster.watch(
        CONFIG_MAPS, options=WatchOptions(initial_events=True, timeout=5 + 4e-10)
    )
    assert (
        len([event async for event in events]) == 2
    )  # the bookmarks of the initial events and of the end
