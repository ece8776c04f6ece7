"""After any writes in any order every watch has the current objects."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import looptime
from hypothesis import given
from hypothesis import strategies as st

from mpi_operator.kube import errors
from mpi_operator.kube.client import EventType, Selector, WatchOptions
from mpi_operator.kube.resources import CONFIG_MAPS
from tests.unit.local.clusters import a_cluster, named

NAMES = st.sampled_from("abcd")
TEAMS = st.sampled_from(["red", "blue"])
OPERATIONS = st.one_of(
    st.tuples(st.just("create"), NAMES, TEAMS),
    st.tuples(st.just("label"), NAMES, TEAMS),
    st.tuples(st.just("write"), NAMES, st.sampled_from("xyz")),
    st.tuples(st.just("delete"), NAMES, st.just("")),
)
STEPS = st.lists(st.tuples(OPERATIONS, st.sampled_from([0, 0, 0, 0.1, 1])), max_size=30)


@dataclass
class Watcher:
    """Rebuilds the objects from the events of a watch, at its own speed."""

    selector: str
    starts: float
    laziness: float
    known: dict[str, Any] = field(default_factory=dict)
    version: int = 0
    relists: int = 0

    async def run(self, cluster):
        await asyncio.sleep(self.starts)
        while True:
            try:
                await self.follow(cluster)
            except errors.Gone:
                self.relists += 1

    async def follow(self, cluster):
        """From the beginning: everything there is, and what happens then."""
        self.known, self.version, is_initial = {}, 0, True
        events = cluster.watch(
            CONFIG_MAPS, options=WatchOptions(labels=self.selector, initial_events=True)
        )
        async with aclosing(events):
            async for event in events:
                if event.type is EventType.BOOKMARK:
                    is_initial = False
                self.take(event, is_initial)
                await asyncio.sleep(self.laziness)

    def take(self, event, is_initial):
        metadata = event.object["metadata"]
        version = int(metadata["resourceVersion"])
        assert is_initial or version >= self.version, "versions only grow"
        self.version = max(version, self.version)
        if event.type is EventType.BOOKMARK:
            return
        name = metadata["name"]
        # Each event says what is true of this watcher: nothing is added or deleted twice.
        assert (name in self.known) is (event.type is not EventType.ADDED)
        if event.type is EventType.DELETED:
            assert version > int(self.known.pop(name)["metadata"]["resourceVersion"])
        else:
            self.known[name] = event.object


WATCHERS = st.lists(
    st.builds(
        Watcher,
        selector=st.sampled_from(["", "team=red", "team!=red"]),
        starts=st.sampled_from([0, 0.5, 2]),
        laziness=st.sampled_from([0, 0.05, 3]),
    ),
    min_size=1,
    max_size=4,
)


async def happen(cluster, operation):
    """Do it; what cannot be done changes nothing. The version that came of it."""
    what, name, value = operation
    change = {"label": {"metadata": {"labels": {"team": value}}}, "write": {"data": {"k": value}}}
    try:
        if what == "create":
            answer = await cluster.create(CONFIG_MAPS, named(name, labels={"team": value}))
        elif what == "delete":
            return await cluster.delete(CONFIG_MAPS, name, "here")
        else:
            answer = await cluster.patch(CONFIG_MAPS, name, change[what], "here")
    except (errors.AlreadyExists, errors.NotFound):
        return None
    return int(answer["metadata"]["resourceVersion"])


async def live(steps, watchers, watch_cache_size):
    cluster = a_cluster(watch_cache_size=watch_cache_size)
    following = [asyncio.create_task(watcher.run(cluster)) for watcher in watchers]
    for operation, pause in steps:
        await happen(cluster, operation)
        await asyncio.sleep(pause)
    await asyncio.sleep(600)  # even the laziest has read everything, and a bookmark
    for watcher, task in zip(watchers, following, strict=True):
        listed = await cluster.list(CONFIG_MAPS, selector=Selector(labels=watcher.selector))
        assert watcher.known == {each["metadata"]["name"]: each for each in listed.items}
        assert watcher.version == int(listed.resource_version)
        assert not task.done(), task.exception()
        task.cancel()
    await asyncio.gather(*following, return_exceptions=True)


def run(scenario):
    loop = looptime.new_event_loop(start=0)
    try:
        loop.run_until_complete(scenario)
    finally:
        loop.close()


@given(STEPS, WATCHERS)
def test_every_watcher_ends_with_the_current_objects(steps, watchers):
    run(live(steps, watchers, watch_cache_size=1000))
    assert all(watcher.relists == 0 for watcher in watchers)


@given(STEPS, WATCHERS)
def test_with_a_small_cache_watchers_list_again_and_are_still_right(steps, watchers):
    run(live(steps, watchers, watch_cache_size=2))


async def versions_of(operations):
    cluster = a_cluster()
    versions = []
    for operation in operations:
        before = (await cluster.list(CONFIG_MAPS)).resource_version
        version = await happen(cluster, operation)
        after = (await cluster.list(CONFIG_MAPS)).resource_version
        versions.append((int(before), version, int(after)))
    return versions


@given(st.lists(OPERATIONS, max_size=20))
def test_versions_only_grow_and_each_write_has_one(operations):
    for before, version, after in asyncio.run(versions_of(operations)):
        assert before <= after <= before + 1
        assert version is None or version <= after


def test_the_events_of_a_watch_are_the_writes_in_their_order():
    async def watched(cluster):
        events = cluster.watch(CONFIG_MAPS, options=WatchOptions(resource_version="1", timeout=5))
        found = [(event.type.value, event.object["metadata"].get("name")) async for event in events]
        return found[:-1]  # less the bookmark at the end

    async def story():
        cluster = a_cluster()
        watching = asyncio.create_task(watched(cluster))
        for operation in (
            ("create", "a", "red"),
            ("create", "b", "red"),
            ("label", "a", "blue"),
            ("delete", "b", ""),
            ("write", "a", "x"),
        ):
            await happen(cluster, operation)
        assert await watching == [
            ("ADDED", "a"),
            ("ADDED", "b"),
            ("MODIFIED", "a"),
            ("DELETED", "b"),
            ("MODIFIED", "a"),
        ]

    run(story())
