"""Watches over time: how far they reach back, and what a quiet one hears."""

import asyncio
from contextlib import aclosing, suppress

import pytest

from mpi_operator.kube import errors
from mpi_operator.kube.client import EventType, WatchOptions
from mpi_operator.kube.informer import Informer
from mpi_operator.kube.objects import Object
from mpi_operator.kube.resources import CONFIG_MAPS, PODS
from tests.unit.local.clusters import a_cluster, named, pod

pytestmark = pytest.mark.looptime


async def fill(cluster, count, beginning="c"):
    for number in range(count):
        await cluster.create(CONFIG_MAPS, named(f"{beginning}{number}"))


async def first_events(events, count):
    async with aclosing(events):
        return [await anext(events) for _ in range(count)]


async def test_a_version_from_too_long_ago_is_gone():
    cluster = a_cluster(watch_cache_size=2)
    await fill(cluster, 5)
    with pytest.raises(errors.Gone, match="too old resource version: 2"):
        await anext(cluster.watch(CONFIG_MAPS, options=WatchOptions(resource_version="2")))


async def test_a_kind_of_which_nothing_is_forgotten_is_watched_from_any_version():
    cluster = a_cluster(watch_cache_size=2)
    await cluster.create(PODS, pod("p"))
    await fill(cluster, 50)
    [event] = await first_events(cluster.watch(PODS, options=WatchOptions(resource_version="1")), 1)
    assert event.object["metadata"]["name"] == "p"


async def test_a_version_that_is_still_to_come_is_gone_too():
    with pytest.raises(errors.Gone, match="Too large resource version: 99"):
        await anext(a_cluster().watch(CONFIG_MAPS, options=WatchOptions(resource_version="99")))


async def test_what_is_no_version_is_a_bad_request():
    with pytest.raises(errors.BadRequest, match="invalid resource version"):
        await anext(a_cluster().watch(CONFIG_MAPS, options=WatchOptions(resource_version="x")))


async def test_a_watcher_that_is_too_slow_is_told_so():
    cluster = a_cluster(watch_cache_size=2)
    events = cluster.watch(CONFIG_MAPS, options=WatchOptions(initial_events=True))
    async with aclosing(events):
        assert (await anext(events)).type is EventType.BOOKMARK
        await fill(cluster, 10)
        with pytest.raises(errors.Gone):
            await anext(events)


async def test_a_watch_without_a_version_begins_with_what_there_is():
    cluster = a_cluster()
    await fill(cluster, 2)
    events = await first_events(cluster.watch(CONFIG_MAPS), 2)
    assert [event.object["metadata"]["name"] for event in events] == ["c0", "c1"]


async def test_a_quiet_watch_is_told_how_far_it_has_come():
    cluster = a_cluster()
    events = cluster.watch(CONFIG_MAPS, options=WatchOptions(resource_version="1"))
    waiting = asyncio.create_task(first_events(events, 1))
    await asyncio.sleep(30)
    await cluster.create(PODS, pod("p"))
    [bookmark] = await waiting
    assert bookmark.type is EventType.BOOKMARK
    assert bookmark.object["metadata"]["resourceVersion"] == "2"
    assert asyncio.get_running_loop().time() == 60


async def test_the_last_word_of_a_watch_is_how_far_it_came():
    cluster = a_cluster()
    await fill(cluster, 1)
    events = cluster.watch(CONFIG_MAPS, options=WatchOptions(resource_version="1", timeout=5))
    assert [event.type async for event in events] == [EventType.ADDED, EventType.BOOKMARK]
    assert asyncio.get_running_loop().time() == 5


async def test_a_fast_reader_does_not_keep_others_from_their_turn():
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


async def test_an_informer_lists_again_when_the_past_is_gone():
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
