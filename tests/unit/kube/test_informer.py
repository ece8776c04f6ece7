"""A server that plays a script, virtual time, and what an informer makes of it."""

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from mpi_operator.kube import errors
from mpi_operator.kube.client import EventType, Page, Selector, WatchEvent
from mpi_operator.kube.informer import Informer
from mpi_operator.kube.metrics import Metrics
from mpi_operator.kube.objects import Pod
from mpi_operator.kube.resources import PODS

pytestmark = pytest.mark.looptime

FOREVER = 1e9
NO_STREAMS = errors.Invalid(errors.Status(message="sendInitialEvents: forbidden", code=422))
GONE = errors.Gone(errors.Status(message="too old", code=410))
LOST = errors.ConnectionLost("reset")


@pytest.fixture(autouse=True)
def no_jitter(monkeypatch):
    monkeypatch.setattr("mpi_operator.kube.informer.random.random", lambda: 0.0)


def pod(name, version, **fields):
    metadata = {"name": name, "namespace": "team", "resourceVersion": str(version)}
    return msgspec.Raw(json.dumps({"metadata": metadata} | fields).encode())


def added(name, version, **fields):
    return WatchEvent(EventType.ADDED, pod(name, version, **fields))


def deleted(name, version):
    return WatchEvent(EventType.DELETED, pod(name, version))


def bookmark(version, **annotations):
    metadata: dict[str, Any] = {"resourceVersion": str(version), "creationTimestamp": None}
    if annotations:
        metadata["annotations"] = annotations
    return WatchEvent(
        EventType.BOOKMARK, msgspec.Raw(json.dumps({"metadata": metadata, "spec": None}).encode())
    )


def end_of_list(version):
    return bookmark(version, **{"k8s.io/initial-events-end": "true"})


def page(version, *items):
    return Page(list(items), str(version))


class Server:
    """Answers each watch and each list with the next script, and the last one for ever after.

    A script is a list of what to send, seconds to wait, and errors to raise; its end is the end of
    the answer.
    """

    def __init__(self, *watches, lists=()):
        self.watches, self.lists = list(watches), list(lists)
        self.asked = []
        self.times = []
        self.open = 0

    async def watch(self, resource, namespace, options):
        assert 300 <= options.timeout <= 600
        self.asked_for = (namespace, Selector(labels=options.labels, fields=options.fields))
        is_stream = options.initial_events
        self.ask("stream" if is_stream else f"watch from {options.resource_version}")
        async for event in self.play(self.watches):
            yield event

    async def pages(self, resource, namespace, selector):
        self.asked_for = (namespace, selector)
        self.ask("list")
        async for each in self.play(self.lists):
            yield each

    def ask(self, what):
        self.asked.append(what)
        self.times.append(asyncio.get_running_loop().time())

    async def play(self, scripts):
        script = scripts.pop(0) if len(scripts) > 1 else scripts[0]
        self.open += 1
        try:
            for step in script:
                if isinstance(step, BaseException):
                    raise step
                if isinstance(step, float | int):
                    await asyncio.sleep(step)
                else:
                    yield step
        finally:
            self.open -= 1

    @property
    def pauses(self):
        return [after - before for before, after in zip(self.times, self.times[1:], strict=False)]


class Watched:
    """An informer of a server, and what it told."""

    def __init__(self, server, **options):
        self.server = server
        self.registry = CollectorRegistry()
        self.informer = Informer(server, PODS, Pod, metrics=Metrics(self.registry), **options)
        self.story: list[tuple[int | None, int | None]] = []
        self.informer.on_change(
            lambda change: self.story.append((version(change.old), version(change.new)))
        )

    @property
    def content(self):
        return {each.metadata.name: version(each) for each in self.informer.store}

    def count(self, name, **labels):
        return self.registry.get_sample_value(name, {"resource": "pods"} | labels) or 0


def version(each):
    return int(each.metadata.resource_version) if each else None


@asynccontextmanager
async def running(*watches, lists=(), **options):
    """An informer that follows the scripts."""
    watched = Watched(Server(*watches, lists=lists), **options)
    task = asyncio.create_task(watched.informer.run())
    try:
        yield watched
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert watched.server.open == 0
        assert asyncio.all_tasks() == {asyncio.current_task()}


# --- reading everything


async def test_a_list_is_streamed_and_the_watch_continues():
    stream = [added("x", 1), added("y", 2), end_of_list(5), 10, added("z", 6), FOREVER]
    async with running(stream) as watched:
        await watched.informer.synced()
        assert watched.content == {"x": 1, "y": 2}
        await asyncio.sleep(11)
        assert watched.content == {"x": 1, "y": 2, "z": 6}
        assert watched.server.asked == ["stream"]
        assert watched.count("informer_relists_total", method="stream") == 1


async def test_nothing_is_synced_before_the_end_of_the_list():
    stream = [added("x", 1), 10, bookmark(3), 10, end_of_list(5), FOREVER]
    async with running(stream) as watched:
        async with asyncio.timeout(30):
            await watched.informer.synced()
        assert asyncio.get_running_loop().time() == 20


async def test_an_object_that_goes_while_the_list_is_streamed_is_gone():
    stream = [added("x", 1), deleted("x", 4), end_of_list(5), FOREVER]
    async with running(stream) as watched:
        await watched.informer.synced()
        assert watched.content == {}


@pytest.mark.parametrize(
    ("stream", "seconds"),
    [
        pytest.param([NO_STREAMS], 0, id="it says so"),
        pytest.param([errors.BadRequest(errors.Status())], 0, id="an old server says so"),
        pytest.param([100, errors.DeadlineExceeded("silence")], 100, id="it never ends the list"),
        pytest.param([added("x", 1), 400], 400, id="it ends the watch but not the list"),
    ],
)
async def test_a_server_that_cannot_stream_is_asked_for_pages(stream, seconds):
    lists = [[page(9, pod("x", 1)), page(9, pod("y", 2))]]
    async with running(stream, [FOREVER], lists=lists) as watched:
        await watched.informer.synced()
        await asyncio.sleep(1)
        assert watched.content == {"x": 1, "y": 2}
        assert watched.server.asked == ["stream", "list", "watch from 9"]
        assert watched.server.times == [0, seconds, seconds]
        assert watched.informer.problem == ""
        assert watched.count("informer_relists_total", method="pages") == 1


async def test_a_server_that_cannot_stream_is_not_asked_to_again():
    lists = [[page(9)], [page(20)]]
    async with running([NO_STREAMS], [GONE], [FOREVER], lists=lists) as watched:
        await asyncio.sleep(1)
        asked = ["stream", "list", "watch from 9", "list", "watch from 20"]
        assert watched.server.asked == asked


async def test_a_bad_request_is_reported_as_what_it_is(caplog):
    refused = errors.BadRequest(errors.Status(message="field label not supported", code=400))
    async with running([refused], lists=[[refused]], selector=Selector(fields="a=b")) as watched:
        await asyncio.sleep(10)
        assert watched.informer.problem == "field label not supported"
    assert [record.error for record in caplog.records] == ["field label not supported"]


async def test_the_selection_is_passed_on():
    selector = Selector(labels="a=b", fields="c=d")
    options = {"namespace": "team", "selector": selector}
    async with running([NO_STREAMS], [FOREVER], lists=[[page(9), 1]], **options) as watched:
        await asyncio.sleep(0.5)
        assert watched.server.asked_for == ("team", selector)
        await asyncio.sleep(1)
        assert watched.server.asked[-1] == "watch from 9"
        assert watched.server.asked_for == ("team", selector)


# --- going on


async def test_a_watch_that_ends_is_resumed_where_it_ended():
    stream = [end_of_list(5), 10, bookmark(70), 300]
    async with running(stream, [added("x", 71), FOREVER]) as watched:
        await asyncio.sleep(311)
        assert watched.server.asked == ["stream", "watch from 70"]
        assert watched.server.pauses == [310]
        assert watched.content == {"x": 71}
        assert watched.count("informer_watch_restarts_total", reason="end of watch") == 1


async def test_a_lost_connection_is_resumed_from_the_last_bookmark():
    stream = [added("x", 1), end_of_list(5), 10, bookmark(70), LOST]
    async with running(stream, [deleted("x", 80), FOREVER]) as watched:
        await asyncio.sleep(11)
        assert watched.server.asked == ["stream", "watch from 70"]
        assert watched.content == {}
        assert watched.count("informer_watch_restarts_total", reason="ConnectionLost") == 1


async def test_a_list_that_is_cut_off_is_read_again():
    again = [added("x", 1), end_of_list(5), FOREVER]
    async with running([added("x", 1), added("y", 2), LOST], again) as watched:
        await watched.informer.synced()
        assert watched.server.asked == ["stream", "stream"]
        assert watched.story == [(None, 1), (None, 2), (2, None)]


async def test_a_version_that_is_too_old_leads_to_a_new_list_and_the_difference():
    stream = [added("x", 1), added("y", 2), added("z", 3), end_of_list(5), 10, GONE]
    again = [added("x", 1), added("y", 20), added("new", 21), end_of_list(30), FOREVER]
    async with running(stream, again) as watched:
        await watched.informer.synced()
        watched.story.clear()
        await asyncio.sleep(11)
        assert watched.server.asked == ["stream", "stream"]
        assert sorted(watched.story, key=str) == [(2, 20), (3, None), (None, 21)]


async def test_a_server_that_went_back_in_time_is_read_anew():
    stream = [added("x", 90), end_of_list(100), 10, GONE]
    restored = [added("x", 40), end_of_list(50), FOREVER]
    async with running(stream, restored) as watched:
        await asyncio.sleep(15)
        assert watched.content == {"x": 40}
        assert watched.story == [(None, 90), (90, None), (None, 40)]


async def test_an_own_write_is_in_the_store_before_its_watch_event():
    stream = [end_of_list(5), 10, added("x", 7), FOREVER]
    async with running(stream) as watched:
        await watched.informer.synced()
        watched.informer.wrote(msgspec.json.decode(pod("x", 7)))
        assert (watched.content, watched.story) == ({"x": 7}, [])
        await asyncio.sleep(11)
        assert watched.story == [(None, 7)]


# --- errors


async def test_the_back_off_grows_and_is_capped():
    async with running([LOST]) as watched:
        await asyncio.sleep(300)
        pauses = watched.server.pauses
        assert pauses[:5] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6])
        assert pauses[-2:] == pytest.approx([30, 30])


async def test_after_a_while_without_errors_the_back_off_starts_over():
    fine = [added("x", 1), end_of_list(5), 60, LOST]
    async with running(*[[LOST]] * 6, fine, [FOREVER]) as watched:
        await asyncio.sleep(100)
        assert watched.server.pauses[-2:] == pytest.approx([3.2, 60.1])


@pytest.mark.parametrize(
    "script",
    [
        pytest.param([], id="at once"),
        pytest.param([bookmark(7)], id="after a bookmark"),
        pytest.param([LOST], id="by breaking"),
        pytest.param([bookmark(7), LOST], id="by breaking after a bookmark"),
        pytest.param([bookmark(7), errors.Undecodable("what?")], id="with nonsense"),
        pytest.param([bookmark("")], id="after a bookmark without a version"),
        pytest.param([asyncio.CancelledError()], id="by a cancellation of its own"),
    ],
)
async def test_a_server_that_ends_every_watch_is_asked_with_a_delay(script):
    async with running([end_of_list(5), 60], script) as watched:
        await asyncio.sleep(60 + 60)
        assert 3 < len(watched.server.asked) < 15


async def test_a_server_that_forgets_every_list_is_asked_with_a_delay():
    async with running([added("x", 1), end_of_list(5), GONE]) as watched:
        await asyncio.sleep(60)
        assert set(watched.server.asked) == {"stream"}
        assert 3 < len(watched.server.asked) < 15


async def test_a_problem_is_logged_once_and_ends_with_the_next_event(caplog):
    stream = [end_of_list(5), 10, LOST]
    async with running(stream, [LOST], [LOST], [10, bookmark(6), FOREVER]) as watched:
        await asyncio.sleep(15)
        assert watched.informer.problem == "reset"
        await asyncio.sleep(10)
        assert watched.informer.problem == ""
    assert [record.error for record in caplog.records] == ["reset"]


async def test_the_next_list_clears_a_problem():
    async with running([LOST], [1, end_of_list(5), FOREVER]) as watched:
        await asyncio.sleep(0.5)
        assert watched.informer.problem == "reset"
        await watched.informer.synced()
        assert watched.informer.problem == ""


@pytest.mark.parametrize(
    "event",
    [
        WatchEvent(EventType.BOOKMARK, msgspec.Raw(b"null")),
        WatchEvent(EventType.BOOKMARK, msgspec.Raw(b'{"metadata": {}}')),
        WatchEvent(EventType.ADDED, msgspec.Raw(b"{}")),
        WatchEvent(EventType.MODIFIED, msgspec.Raw(b"[]")),
        WatchEvent(EventType.DELETED, msgspec.Raw(b'{"metadata": null}')),
    ],
    ids=lambda event: f"{event.type} {bytes(event.raw).decode()}",
)
async def test_a_malformed_event_is_reported_and_the_watch_continues(event):
    stream = [added("x", 1), end_of_list(5), 10, event, FOREVER]
    async with running(stream, [10, added("y", 6), FOREVER]) as watched:
        await asyncio.sleep(11)
        assert "without a" in watched.informer.problem
        await asyncio.sleep(10)
        assert watched.content == {"x": 1, "y": 6}


async def test_an_object_that_does_not_fit_is_left_out():
    stream = [added("x", 1, status=7), added("y", 2), end_of_list(5), FOREVER]
    async with running(stream) as watched:
        await watched.informer.synced()
        assert watched.content == {"y": 2}
        assert watched.count("informer_undecodable_objects_total") == 1


async def test_an_unexpected_error_rises():
    watched = Watched(Server([end_of_list(5), 10, ZeroDivisionError("a mistake")]))
    with pytest.raises(ZeroDivisionError, match="a mistake"):
        await watched.informer.run()
    assert asyncio.all_tasks() == {asyncio.current_task()}


# --- refresh


async def test_a_refresh_reads_everything_again():
    stream = [added("x", 1), end_of_list(5), FOREVER]
    again = [3, added("y", 9), end_of_list(10), FOREVER]
    async with running(stream, again) as watched:
        await watched.informer.synced()
        await asyncio.sleep(10)
        await watched.informer.refresh()
        assert watched.content == {"y": 9}
        assert watched.server.asked == ["stream", "stream"]
        assert asyncio.get_running_loop().time() == 13


async def test_a_refresh_does_not_wait_for_the_end_of_a_back_off():
    async with running(*[[LOST]] * 12, [end_of_list(5), FOREVER]) as watched:
        await asyncio.sleep(60)
        assert watched.server.pauses[-1] > 10
        before = asyncio.get_running_loop().time()
        watched.server.watches = [[end_of_list(5), FOREVER]]
        await watched.informer.refresh()
        assert asyncio.get_running_loop().time() == before


async def test_a_refresh_that_fails_is_retried_with_a_delay():
    async with running([end_of_list(5), FOREVER], [LOST]) as watched:
        await watched.informer.synced()
        refresh = asyncio.create_task(watched.informer.refresh())
        await asyncio.sleep(60)
        assert not refresh.done()
        assert len(watched.server.asked) < 15
        refresh.cancel()
        await asyncio.wait([refresh])


async def test_a_refresh_before_the_start_is_done_by_the_start():
    watched = Watched(Server([added("x", 1), end_of_list(5), FOREVER]))
    refresh = asyncio.create_task(watched.informer.refresh())
    await asyncio.sleep(10)
    run = asyncio.create_task(watched.informer.run())
    await refresh
    assert watched.content == {"x": 1}
    run.cancel()
    await asyncio.wait([run])


async def test_a_refresh_during_a_list_starts_it_over():
    slow = [added("x", 1), 10, end_of_list(5), FOREVER]
    again = [added("y", 6), end_of_list(10), FOREVER]
    async with running(slow, again) as watched:
        await asyncio.sleep(1)
        await watched.informer.refresh()
        assert (watched.content, watched.server.asked) == ({"y": 6}, ["stream", "stream"])


async def test_several_refreshes_at_once_are_all_answered():
    async with running([end_of_list(5), FOREVER], [1, end_of_list(6), FOREVER]) as watched:
        await watched.informer.synced()
        async with asyncio.timeout(10):
            await asyncio.gather(*(watched.informer.refresh() for _ in range(10)))
        assert len(watched.server.asked) <= 3


async def test_a_refresh_at_the_moment_a_watch_breaks_is_answered():
    async with running([end_of_list(5), 10, LOST], [end_of_list(6), FOREVER]) as watched:
        await asyncio.sleep(10)
        await watched.informer.refresh()
        assert watched.server.asked == ["stream", "stream"]
        assert watched.informer.problem == ""


# --- the end


@pytest.mark.parametrize(
    "script",
    [
        pytest.param([FOREVER], id="while it opens"),
        pytest.param([end_of_list(5), FOREVER], id="while it watches"),
        pytest.param([LOST], id="while it waits"),
    ],
)
async def test_cancelling_leaves_nothing_behind(script):
    async with running(script) as watched:
        await asyncio.sleep(100)
        assert watched.server.asked
    # `running` looks for tasks and watches that are left
