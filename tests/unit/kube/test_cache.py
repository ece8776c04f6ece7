"""Given what reaches a cache, in which order, what it contains and what its handlers get."""

import json
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from prometheus_client import CollectorRegistry

from mpi_operator.kube import errors
from mpi_operator.kube.cache import Cache, Change, Unreadable
from mpi_operator.kube.metrics import Metrics
from mpi_operator.kube.objects import Pod
from mpi_operator.kube.resources import PODS, Key

# An object that fits its type, and two that do not; the last one not even in its metadata.
FINE: dict[str, Any] = {}
ODD = {"status": {"phase": 7}}
ODDER = {"metadata": {"labels": {"a": 7}}}


def pod(name="x", version=1, odd=FINE):
    metadata = {"name": name, "namespace": "team", "resourceVersion": str(version)}
    return odd | {"metadata": metadata | odd.get("metadata", {})}


def raw(manifest):
    return msgspec.Raw(json.dumps(manifest).encode())


def key(name="x"):
    return Key("team", name)


def versions(change):
    """A change as (old version, new version)."""
    return tuple(int(each.metadata.resource_version) if each else None for each in change)


class WatchedCache:
    """A cache, and the changes that its handlers got."""

    def __init__(self):
        self.registry = CollectorRegistry()
        self.cache = Cache(PODS, Pod, metrics=Metrics(self.registry))
        self.changes: list[tuple[Pod | None, Pod | None]] = []
        self.cache.on_change(lambda change: self.changes.append((change.old, change.new)))

    def saw(self, *args, **options):
        manifest = pod(*args, **options)
        self.cache.saw(raw(manifest))
        self.cache.advance(manifest["metadata"]["resourceVersion"])

    def lost(self, *args):
        manifest = pod(*args)
        self.cache.lost(raw(manifest))
        self.cache.advance(manifest["metadata"]["resourceVersion"])

    def census(self, version, *manifests):
        seen = {self.cache.saw(raw(manifest)).key for manifest in manifests}
        self.cache.end_census(seen, str(version))

    def wrote(self, *args):
        self.cache.wrote(pod(*args))

    @property
    def reported(self):
        return [versions(change) for change in self.changes]

    @property
    def content(self):
        return {
            each.metadata.name: int(each.metadata.resource_version) for each in self.cache.store
        }

    def count(self, name):
        return self.registry.get_sample_value(name, {"resource": "pods"})


# --- the stream


def test_watch_events_are_stored_and_reported():
    watched = WatchedCache()
    watched.saw("x", 1)
    watched.saw("x", 2)
    watched.lost("x", 3)
    assert watched.reported == [(None, 1), (1, 2), (2, None)]
    assert watched.content == {}


def test_the_same_version_is_reported_once():
    watched = WatchedCache()
    watched.saw("x", 1)
    watched.saw("x", 1)
    assert watched.reported == [(None, 1)]


def test_an_older_version_is_ignored():
    watched = WatchedCache()
    watched.saw("x", 10)
    watched.saw("x", 9)
    watched.lost("x", 9)
    assert (watched.reported, watched.content) == ([(None, 10)], {"x": 10})


def test_deleting_an_unknown_object_is_not_reported():
    watched = WatchedCache()
    watched.lost("x", 1)
    assert watched.reported == []


# --- a census


def test_a_census_reports_the_difference():
    watched = WatchedCache()
    watched.census(3, pod("same", 1), pod("old", 2), pod("gone", 3))
    watched.changes.clear()
    watched.census(9, pod("same", 1), pod("old", 8), pod("new", 7))
    assert sorted(watched.reported, key=str) == [(2, 8), (3, None), (None, 7)]
    assert watched.content == {"same": 1, "old": 8, "new": 7}


def test_after_a_census_the_cache_reaches_to_its_version():
    watched = WatchedCache()
    watched.census(9)
    assert watched.cache.version == "9"


def test_what_is_newer_than_a_census_survives_it():
    watched = WatchedCache()
    watched.wrote("x", 12)
    watched.census(9)
    assert watched.content == {"x": 12}


def test_a_list_without_a_version_is_refused():
    with pytest.raises(errors.Undecodable, match="pods: the server sent a list without a version"):
        WatchedCache().census("")


def test_a_server_that_went_back_in_time_is_read_once_more():
    watched = WatchedCache()
    watched.census(100, pod("x", 90), pod("y", 10))
    watched.changes.clear()
    with pytest.raises(errors.Gone, match=r"went back from resourceVersion 100 to 50"):
        watched.census(50, pod("x", 40), pod("y", 10))
    assert (watched.content, sorted(watched.reported)) == ({}, [(10, None), (90, None)])
    watched.census(50, pod("x", 40), pod("y", 10))
    assert watched.content == {"x": 40, "y": 10}


# --- own writes


def test_an_own_write_is_there_at_once_and_reported_with_its_watch_event():
    watched = WatchedCache()
    watched.wrote("x", 5)
    assert (watched.content, watched.reported) == ({"x": 5}, [])
    watched.saw("x", 5)
    assert (watched.content, watched.reported) == ({"x": 5}, [(None, 5)])


def test_what_others_wrote_before_is_skipped():
    watched = WatchedCache()
    watched.saw("x", 1)
    watched.wrote("x", 5)
    watched.saw("x", 3)
    watched.saw("x", 5)
    assert watched.reported == [(None, 1), (1, 5)]


def test_several_own_writes_are_reported_with_their_watch_events():
    watched = WatchedCache()
    watched.saw("x", 1)
    for version in (2, 3):
        watched.wrote("x", version)
    for version in (2, 3):
        watched.saw("x", version)
    assert watched.reported == [(None, 1), (1, 3)]


def test_an_answer_that_comes_late_brings_nothing_back():
    watched = WatchedCache()
    watched.saw("x", 5)
    watched.lost("x", 6)
    watched.wrote("x", 5)
    assert (watched.content, watched.reported) == ({}, [(None, 5), (5, None)])


def test_an_answer_that_comes_late_brings_nothing_back_while_a_census_is_due():
    watched = WatchedCache()
    watched.saw("x", 5)
    watched.lost("x", 6)
    watched.cache.expire()
    watched.wrote("x", 5)
    assert watched.content == {}


def test_an_answer_that_comes_during_a_census_is_not_reported_twice():
    watched = WatchedCache()
    watched.cache.saw(raw(pod("x", 5)))
    watched.wrote("x", 5)
    watched.census(6, pod("x", 5))
    assert watched.reported == [(None, 5)]


def test_an_own_object_that_was_never_reported_goes_unreported():
    watched = WatchedCache()
    watched.wrote("x", 5)
    watched.lost("x", 6)
    assert (watched.content, watched.reported) == ({}, [])


def test_an_own_write_that_was_undone_before_the_census_is_gone():
    watched = WatchedCache()
    watched.census(3, pod("x", 1))
    watched.wrote("x", 5)
    watched.census(9)
    assert (watched.content, watched.reported) == ({}, [(None, 1), (1, None)])


@pytest.mark.parametrize("odd", [ODD, ODDER, {"metadata": {"name": 7}}], ids=json.dumps)
def test_an_answer_that_does_not_fit_is_left_to_the_stream(odd):
    watched = WatchedCache()
    watched.saw("x", 1)
    watched.cache.wrote(pod("x", 5, odd))
    assert watched.content == {"x": 1}


@pytest.mark.parametrize("answer", [{}, {"metadata": {}}], ids=json.dumps)
def test_an_answer_that_is_no_object_is_not_stored(answer):
    watched = WatchedCache()
    watched.cache.wrote(answer)
    assert watched.content == {}


# --- objects that do not fit


@pytest.mark.parametrize("odd", [ODD, ODDER], ids=json.dumps)
def test_an_object_that_does_not_fit_is_left_out_until_it_is_mended(odd, caplog):
    watched = WatchedCache()
    watched.saw("x", 1)
    watched.saw("x", 2, odd=odd)
    assert watched.content == {}
    watched.saw("x", 3)
    assert watched.reported == [(None, 1), (1, None), (None, 3)]
    assert [record.key for record in caplog.records] == ["team/x"]
    assert watched.count("informer_undecodable_objects_total") == 1


@pytest.mark.parametrize("odd", [ODD, ODDER], ids=json.dumps)
def test_an_object_that_does_not_fit_stops_no_other(odd):
    watched = WatchedCache()
    watched.census(3, pod("x", 1, odd), pod("y", 2))
    assert watched.content == {"y": 2}


@pytest.mark.parametrize("odd", [ODD, ODDER], ids=json.dumps)
def test_an_object_that_does_not_fit_can_go(odd):
    watched = WatchedCache()
    watched.saw("x", 1)
    watched.cache.lost(raw(pod("x", 2, odd)))
    assert watched.content == {}


@pytest.mark.parametrize("odd", [ODD, ODDER], ids=json.dumps)
def test_an_object_that_does_not_fit_is_known_until_it_fits_or_goes(odd):
    watched = WatchedCache()
    reported: list[Unreadable] = []
    watched.cache.on_unreadable(reported.append)
    watched.saw("x", 1, odd=odd)
    assert [each.metadata.key for each in reported] == [key("x")]
    assert list(watched.cache.unreadable) == [key("x")]
    watched.saw("x", 2)
    assert watched.cache.unreadable == {}
    watched.saw("x", 3, odd=odd)
    watched.cache.lost(raw(pod("x", 4, odd)))
    assert watched.cache.unreadable == {}
    watched.saw("x", 5, odd=odd)
    watched.census(6)
    assert watched.cache.unreadable == {}


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param({"metadata": {"labels": None}}, id="metadata"),
        pytest.param({"status": {"phase": None, "conditions": [None]}}, id="status"),
        pytest.param({"spec": None}, id="all of the spec"),
    ],
)
def test_null_is_the_same_as_absent(odd):
    watched = WatchedCache()
    watched.saw("x", 1, odd=odd)
    watched.wrote("y", 2)
    assert watched.content == {"x": 1, "y": 2}
    known = watched.cache.store.get(key("x"))
    assert known is not None
    assert known == Pod(metadata=known.metadata)


def test_an_odd_version_before_an_own_write_does_not_hide_it():
    watched = WatchedCache()
    watched.saw("x", 1)
    watched.wrote("x", 5)
    watched.saw("x", 3, odd=ODD)
    assert watched.content == {"x": 5}
    watched.saw("x", 5)
    assert watched.reported == [(None, 1), (1, 5)]


@pytest.mark.parametrize(
    "body",
    [
        b"null",
        b"{}",
        b'{"metadata": null}',
        b'{"metadata": {"name": "x"}}',
        b'{"metadata": {"resourceVersion": "7"}}',
        b'{"metadata": {"name": null, "resourceVersion": "7"}}',
        b'{"metadata": {"name": "\xff", "resourceVersion": "7"}}',
        b'{"x": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    ],
    ids=lambda body: repr(body[:40]),
)
@pytest.mark.parametrize("method", [Cache.saw, Cache.lost])
def test_something_without_name_and_version_is_no_object(method, body):
    watched = WatchedCache()
    with pytest.raises(errors.Undecodable, match="without a name or a version"):
        method(watched.cache, msgspec.Raw(body))
    assert watched.content == {}


# --- handlers


def test_a_handler_that_fails_stops_neither_the_cache_nor_the_others(caplog):
    watched = WatchedCache()
    cache = Cache(PODS, Pod)

    def fail(change):
        raise ValueError("oops")

    cache.on_change(fail)
    cache.on_change(lambda change: watched.changes.append((change.old, change.new)))
    cache.saw(raw(pod("x", 1)))
    assert watched.reported == [(None, 1)]
    assert "oops" in caplog.text


def test_a_handler_finds_the_change_in_the_store():
    cache = Cache(PODS, Pod)
    found = []
    cache.on_change(lambda change: found.append(cache.store.get(key())))
    cache.saw(raw(pod("x", 1)))
    cache.lost(raw(pod("x", 2)))
    assert [each and each.metadata.resource_version for each in found] == ["1", None]


# --- everything together

NAMES = st.sampled_from("xyz")


@dataclass
class Server:
    """Objects, one counter of versions, and a history of what happened."""

    version: int = 1
    objects: dict[str, Any] = field(default_factory=dict)
    history: list[tuple[int, str, Any]] = field(default_factory=list)

    def write(self, name: str, odd: Any) -> Any:
        self.version += 1
        self.objects[name] = written = pod(name, self.version, odd)
        self.history.append((self.version, "MODIFIED", written))
        return written

    def delete(self, name: str) -> None:
        if name in self.objects:
            self.version += 1
            last = self.objects.pop(name)
            metadata = last["metadata"] | {"resourceVersion": str(self.version)}
            self.history.append((self.version, "DELETED", last | {"metadata": metadata}))

    def go_back(self) -> None:
        """To the half of its time, with what there was then."""
        self.version //= 2
        self.history = [event for event in self.history if event[0] <= self.version]
        self.objects = {}
        for _, kind, manifest in self.history:
            self.objects[manifest["metadata"]["name"]] = manifest if kind != "DELETED" else None
        self.objects = {name: manifest for name, manifest in self.objects.items() if manifest}

    @property
    def fitting(self) -> dict[str, str]:
        return {
            name: manifest["metadata"]["resourceVersion"]
            for name, manifest in self.objects.items()
            if not manifest.get("status") and "labels" not in manifest["metadata"]
        }


class Replica(dict[Key, Pod]):
    """The objects as a handler of changes knows them."""

    def take(self, change: Change[Pod]) -> None:
        known = change.new or change.old
        assert known is not None
        assert self.get(known.metadata.key) == change.old, "the story has a gap"
        assert change.old != change.new, "reported twice"
        if change.new is None:
            del self[known.metadata.key]
        else:
            self[known.metadata.key] = change.new


class CacheMachine(RuleBasedStateMachine):
    """A server that changes, and a cache that hears of it late, in part, and from three sides."""

    def __init__(self) -> None:
        super().__init__()
        self.server = Server()
        self.replica = Replica()
        self.registry = CollectorRegistry()
        self.cache = Cache(PODS, Pod, metrics=Metrics(self.registry))
        self.failures: list[str] = []
        self.cache.on_change(self.take)
        self.stream: int | None = None  # how far it has come; None when a census is due
        self.census: tuple[int, list[Any], set[Key]] | None = None
        self.answers: list[Any] = []
        self.visible: dict[str, int] = {}  # own writes the cache knows of
        self.passed = 0  # how far the stream ever came

    def take(self, change: Change[Pod]) -> None:
        try:  # handlers' errors are only logged
            self.replica.take(change)
        except AssertionError as error:
            self.failures.append(str(error))

    @property
    def is_watching(self) -> bool:
        return self.stream is not None

    @rule(name=NAMES, odd=st.sampled_from([FINE, FINE, FINE, ODD, ODDER]), own=st.booleans())
    def write(self, name: str, odd: Any, own: bool) -> None:
        written = self.server.write(name, odd)
        if own:
            self.answers.append(written)

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        self.server.delete(name)

    @precondition(lambda self: self.answers)
    @rule(data=st.data())
    def get_an_answer(self, data: st.DataObject) -> None:
        answer = self.answers.pop(data.draw(st.integers(0, len(self.answers) - 1)))
        self.cache.wrote(answer)
        self.note(answer)

    def note(self, answer: Any) -> None:
        name, version = answer["metadata"]["name"], int(answer["metadata"]["resourceVersion"])
        if "labels" not in answer["metadata"] and "status" not in answer:
            self.visible[name] = max(version, self.visible.get(name, 0))

    def forget(self, manifest: Any) -> None:
        """A watch event of an object takes the place of what we wrote before."""
        name, version = manifest["metadata"]["name"], int(manifest["metadata"]["resourceVersion"])
        if self.visible.get(name, 0) <= version:
            self.visible.pop(name, None)

    @precondition(lambda self: self.is_watching)
    @rule(most=st.integers(1, 5))
    def deliver(self, most: int) -> None:
        coming = [event for event in self.server.history if event[0] > (self.stream or 0)]
        for version, kind, manifest in coming[:most]:
            take = self.cache.lost if kind == "DELETED" else self.cache.saw
            self.cache.advance(take(raw(manifest)).resource_version)
            self.stream = self.passed = version

    @rule()
    def lose_the_place(self) -> None:
        self.cache.expire()
        self.stream = self.census = None

    @precondition(lambda self: not self.is_watching and self.census is None)
    @rule()
    def begin_census(self) -> None:
        self.census = (self.server.version, list(self.server.objects.values()), set())

    @precondition(lambda self: self.census is not None)
    @rule(most=st.integers(1, 3))
    def go_on_with_census(self, most: int) -> None:
        assert self.census is not None
        version, waiting, seen = self.census
        for manifest in waiting[:most]:
            seen.add(self.cache.saw(raw(manifest)).key)
            self.forget(manifest)
        self.census = (version, waiting[most:], seen)
        if len(waiting) <= most:
            self.cache.end_census(seen, str(version))
            self.stream, self.census, self.passed = version, None, version

    @property
    def would_notice(self) -> bool:
        """Whether a server that goes back has to be noticed: it lands before what was heard of."""
        heard = self.stream or 0
        return self.server.version // 2 < heard and all(
            own <= heard for own in self.visible.values()
        )

    @precondition(lambda self: self.would_notice)
    @rule()
    def go_back_in_time(self) -> None:
        self.server.go_back()
        self.answers.clear()
        self.visible.clear()
        self.passed = 0
        seen = {self.cache.saw(raw(each)).key for each in self.server.objects.values()}
        with pytest.raises(errors.Gone):
            self.cache.end_census(seen, str(self.server.version))
        assert len(self.store) == 0
        self.lose_the_place()

    @invariant()
    def nothing_is_told_twice_or_left_out(self) -> None:
        assert not self.failures

    @invariant()
    def a_cache_that_caught_up_is_like_the_server(self) -> None:
        if self.stream is not None and self.stream >= self.server.version:
            content = {each.metadata.name: each.metadata.resource_version for each in self.store}
            assert content == self.server.fitting
            assert self.replica == {each.metadata.key: each for each in self.store}

    @invariant()
    def own_writes_stay_visible_until_the_stream_has_passed_them(self) -> None:
        for name, version in self.visible.items():
            known = self.store.get(key(name))
            has_passed = version <= self.passed
            assert has_passed or (known and int(known.metadata.resource_version) >= version)

    @invariant()
    def the_size_is_counted(self) -> None:
        counted = self.registry.get_sample_value("informer_cached_objects", {"resource": "pods"})
        assert counted == len(self.store)

    @property
    def store(self) -> Any:
        return self.cache.store


TestCacheMachine = CacheMachine.TestCase
TestCacheMachine.settings = settings(
    max_examples=50,
    stateful_step_count=40,
)
