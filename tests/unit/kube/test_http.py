"""The whole client against a server on this machine that answers as told."""

import asyncio
import gc
import json
from contextlib import aclosing, asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry

from mpi_operator.kube import errors
from mpi_operator.kube.client import EventType, LogOptions, Selector
from mpi_operator.kube.config import Credential
from mpi_operator.kube.config.headers import bearer
from mpi_operator.kube.metrics import Metrics
from mpi_operator.kube.resources import CONFIG_MAPS, PODS
from mpi_operator.kube.transport import Timeouts
from tests.support.api_server import breaks_off, client_of, cuts, hangs, says, serving, streams
from tests.support.waiting import until

POD = {"metadata": {"name": "x", "namespace": "team"}}
IMPATIENT = Timeouts(read=0.05, write=0.05, deadline=0.04, silence=0.05)
GONE = {"kind": "Status", "reason": "Expired", "code": 410, "message": "too old"}

WRITES = pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda client: client.create(PODS, POD), id="POST"),
        pytest.param(lambda client: client.replace(PODS, POD), id="PUT"),
        pytest.param(lambda client: client.patch(PODS, "x", {}, "team"), id="PATCH"),
        pytest.param(lambda client: client.apply(PODS, POD, manager="me"), id="apply"),
        pytest.param(lambda client: client.delete(PODS, "x", "team"), id="DELETE"),
        pytest.param(lambda client: client.delete_collection(PODS, "team"), id="DELETE many"),
    ],
)


def get(client):
    return client.get(PODS, "x", "team")


def line(kind, name="x", **fields):
    manifest = {"metadata": {"name": name, "resourceVersion": "1"}} | fields
    return json.dumps({"type": kind, "object": manifest}).encode() + b"\n"


@asynccontextmanager
async def talking(*answers, **options):
    """A server with these answers, and a client of it."""
    async with serving(*answers) as server, client_of(server, **options) as client:
        yield server, client


async def read(generator):
    """Everything, to the end."""
    async with aclosing(generator):
        return [each async for each in generator]


async def watched(*answers, **options):
    """The names in the events of a watch that gets these answers."""
    async with talking(*answers, **options) as (_, client):
        return [(each.type, each.object["metadata"]["name"]) async for each in client.watch(PODS)]


async def logged(*chunks, **options):
    async with talking(streams(*chunks)) as (_, client):
        return await read(client.log("x", "team", **options))


# --- calls


@WRITES
async def test_a_write_is_sent_once_and_answered(write):
    async with talking(says(POD)) as (server, client):
        assert await write(client) in (POD, None)
        assert len(server.seen) == 1


@WRITES
async def test_a_write_that_is_refused_for_now_is_sent_again(write):
    async with talking(says({}, 429, Retry_After="0"), says(POD)) as (server, client):
        assert await write(client) in (POD, None)
        assert len(server.seen) == 2
        assert server.bodies[0] == server.bodies[1]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        pytest.param(says({}, 500), errors.ServerError, id="500"),
        pytest.param(says({}, 503, Retry_After="0"), errors.Unavailable, id="503"),
        pytest.param(cuts, errors.ConnectionLost, id="cut"),
        pytest.param(breaks_off, errors.ConnectionLost, id="cut in the middle"),
    ],
)
@WRITES
async def test_a_write_that_may_have_happened_is_sent_once(write, answer, error):
    # First something else, so that it goes over a connection that was kept.
    async with talking(says(POD), answer) as (server, client):
        await get(client)
        with pytest.raises(error):
            await write(client)
        assert len(server.seen) == 2


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(says({}, 429), id="429"),
        pytest.param(says({}, 500), id="500"),
        pytest.param(says(b"<html>", 502), id="a proxy's page"),
        pytest.param(cuts, id="cut"),
        pytest.param(breaks_off, id="cut in the middle"),
    ],
)
async def test_a_read_that_fails_is_sent_again(answer):
    async with talking(answer, says(POD)) as (server, client):
        assert await get(client) == POD
        assert len(server.seen) == 2


async def test_a_server_that_wants_to_be_left_alone_for_an_hour_rises():
    async with talking(says({}, 429, Retry_After="3600")) as (server, client):
        with pytest.raises(errors.TooManyRequests) as raised:
            await get(client)
        assert (raised.value.retry_after, len(server.seen)) == (3600, 1)


async def test_a_hang_ends_with_the_deadline():
    async with talking(hangs, timeouts=IMPATIENT) as (_, client):
        with pytest.raises(errors.DeadlineExceeded):
            await get(client)


class Rotating:
    """A token that is replaced when it is refused."""

    def __init__(self):
        self.token = "old"

    async def current(self):
        return Credential(bearer(self.token, "here"))

    async def refused(self, credential):
        self.token = "new"
        return True


async def test_a_refused_token_is_replaced_once():
    async with talking(says({}, 401), says(POD), credentials=Rotating()) as (server, client):
        assert await client.create(PODS, POD) == POD
        shown = [request.headers["Authorization"] for request in server.requests]
        assert shown == ["Bearer old", "Bearer new"]


async def test_a_new_token_that_is_refused_too_rises():
    async with talking(says({}, 401), credentials=Rotating()) as (server, client):
        with pytest.raises(errors.Unauthorized):
            await get(client)
        assert len(server.seen) == 2


class Over:
    """A fence that lets nothing through."""

    def __init__(self, grace=10.0):
        self.grace = grace

    def remaining(self):
        raise errors.NotLeader("over")

    def doubt(self):
        raise AssertionError("nothing was sent")


@WRITES
async def test_a_fenced_client_reads_and_does_not_write(write):
    async with talking(says(POD)) as (server, client):
        fenced = client.fenced_by(Over())
        with pytest.raises(errors.NotLeader):
            await write(fenced)
        assert await get(fenced) == POD
        assert len(server.seen) == 1
        await write(client)


async def test_a_client_whose_bytes_may_outlive_the_lease_is_refused():
    async with talking(says(POD)) as (_, client):
        with pytest.raises(ValueError, match="make the lease longer"):
            client.fenced_by(Over(grace=5.0))


async def test_what_is_sent_is_counted():
    registry = CollectorRegistry()
    async with talking(says({}, 404), metrics=Metrics(registry)) as (_, client):
        with pytest.raises(errors.NotFound):
            await client.get(PODS, "x", "team", subresource="status")
    labels = {"verb": "get", "resource": "pods/status", "code": "404"}
    assert registry.get_sample_value("rest_client_requests_total", labels) == 1


async def test_of_many_calls_only_so_many_are_sent_at_once():
    async with talking(says(POD), concurrency=3) as (server, client):
        await asyncio.gather(*(get(client) for _ in range(30)))
        assert len(server.connections) <= 3


# --- answers that make no sense


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"<html>Welcome to the hotel's network</html>",
        b'{"metadata": ',
        b'{"name": "\xff"}',
        b"[" * 5000 + b"]" * 5000,
    ],
    ids=lambda body: repr(body[:30]),
)
async def test_an_answer_that_is_no_object_is_an_error(body):
    async with talking(says(body)) as (_, client):
        with pytest.raises(
            errors.Undecodable,
            match=r"^get /api/v1/namespaces/team/pods/x: the response does not conform ",
        ):
            await get(client)


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"metadata": null}',
        b'{"metadata": {"continue": 7}}',
        b'{"metadata": {}, "items": {}}',
        b'{"metadata": {}, "items": [1]}',
        b'{"metadata": {}, "items": [null]}',
        b'{"metadata": {}, "items": [{"a": "\xff"}]}',
    ],
    ids=repr,
)
async def test_a_list_that_is_none_is_an_error(body):
    async with talking(says(body)) as (_, client):
        with pytest.raises(errors.Undecodable):
            await client.list(PODS)


@pytest.mark.parametrize("items", [{}, {"items": None}, {"items": []}], ids=str)
async def test_a_list_of_nothing_is_empty(items):
    async with talking(says({"metadata": {"resourceVersion": "7"}} | items)) as (_, client):
        listed = await client.list(PODS)
    assert (listed.items, listed.resource_version) == ([], "7")


# --- pages


def page(*names, version="7", token=""):
    items = [{"metadata": {"name": name}} for name in names]
    return says({"metadata": {"resourceVersion": version, "continue": token}, "items": items})


async def test_pages_are_asked_for_until_the_last():
    async with talking(page("a", "b", token="t/+="), page("c")) as (server, client):
        pages = await read(client.pages(PODS, "team", Selector(labels="a in (b)"), limit=2))
        assert [len(each.items) for each in pages] == [2, 1]
        second = dict(server.requests[1].query)
        assert second == {"labelSelector": "a in (b)", "limit": "2", "continue": "t/+="}


async def test_a_page_that_comes_too_late_is_gone():
    async with talking(page("a", token="t"), says(GONE, 410)) as (_, client):
        with pytest.raises(errors.Gone, match="too old"):
            await client.list(PODS)


# --- watches


async def test_a_watch_yields_events_until_its_end():
    events = line("ADDED", "x") + line("MODIFIED", "y") + line("BOOKMARK", "z")
    assert await watched(streams(events[:50], events[50:])) == [
        ("ADDED", "x"),
        ("MODIFIED", "y"),
        ("BOOKMARK", "z"),
    ]


async def test_a_last_line_without_an_end_counts():
    assert await watched(streams(line("ADDED").rstrip())) == [("ADDED", "x")]


async def test_an_event_of_two_megabytes_is_one_event():
    async with talking(streams(line("ADDED", data="x" * 2_000_000))) as (_, client):
        (event,) = await read(client.watch(CONFIG_MAPS))
    assert event.type is EventType.ADDED
    assert len(event.object["data"]) == 2_000_000


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        pytest.param(
            streams(
                line("ADDED"), b'{"type": "ERROR", "object": %s}\n' % json.dumps(GONE).encode()
            ),
            errors.Gone,
            "too old",
            id="an error inside",
        ),
        pytest.param(says(GONE, 410), errors.Gone, "too old", id="an error before the first event"),
        pytest.param(
            streams(b'{"type": "ERROR", "object": null}\n'),
            errors.ServerError,
            "not a Status",
            id="an error that says nothing",
        ),
        pytest.param(streams(line("ADDED")[:20]), errors.Undecodable, "watch /api", id="half"),
        pytest.param(streams(line("RENAMED")), errors.Undecodable, "RENAMED", id="a new type"),
        pytest.param(streams(b'{"type": "ADDED"}\n'), errors.Undecodable, "object", id="nothing"),
        pytest.param(streams(b"\n"), errors.Undecodable, "watch /api", id="an empty line"),
        pytest.param(streams(b"<html>\n"), errors.Undecodable, "watch /api", id="a page"),
        pytest.param(
            streams(line("ADDED"), line("ADDED")[:20], then=cuts),
            errors.ConnectionLost,
            "watch http",
            id="cut in the middle of a line",
        ),
    ],
)
async def test_how_a_watch_breaks(answer, error, message):
    with pytest.raises(error, match=message):
        await watched(answer)


@pytest.mark.parametrize(
    "answer", [hangs, streams(line("ADDED"), then=hangs)], ids=["at first", "later"]
)
async def test_a_watch_that_is_silent_for_too_long_ends(answer):
    with pytest.raises(errors.DeadlineExceeded):
        await watched(answer, timeouts=IMPATIENT)


async def test_opening_a_watch_is_tried_again():
    assert await watched(says({}, 503), cuts, streams(line("ADDED"))) == [("ADDED", "x")]


async def test_an_event_without_an_object_is_an_error():
    async with talking(streams(b'{"type": "ADDED", "object": [1]}\n')) as (_, client):
        (event,) = await read(client.watch(PODS))
        with pytest.raises(errors.Undecodable, match="not a Kubernetes object"):
            assert event.object


def acquired(client):
    return len(client._transport._session.connector._acquired)


STREAMS = pytest.mark.parametrize(
    "open_",
    [
        pytest.param(lambda client: client.watch(PODS), id="watch"),
        pytest.param(lambda client: client.log("x", "team", LogOptions(follow=True)), id="log"),
    ],
)


@STREAMS
async def test_a_closed_stream_has_given_its_connection_back(open_):
    async with talking(streams(line("ADDED"), then=hangs)) as (_, client):
        stream = open_(client)
        await anext(stream)
        tasks = asyncio.all_tasks()
        await stream.aclose()
        assert acquired(client) == 0
        assert asyncio.all_tasks() <= tasks


@STREAMS
@pytest.mark.parametrize(
    "answer", [hangs, streams(then=hangs), streams(line("ADDED"), then=hangs)], ids=range(3)
)
async def test_a_cancelled_stream_has_given_its_connection_back(open_, answer):
    async with talking(answer) as (server, client):
        reading = asyncio.create_task(read(open_(client)))
        while not server.seen:
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait([reading])
        assert acquired(client) == 0
        gc.collect()  # a generator left open would say so


@STREAMS
async def test_open_streams_do_not_count_as_calls(open_):
    async with (
        talking(streams(line("ADDED"), then=hangs), says(POD), concurrency=1) as (_, client),
        aclosing(open_(client)) as stream,
    ):
        await anext(stream)
        assert await get(client) == POD


async def test_followed_logs_that_have_not_begun_block_no_calls():
    async with talking(hangs, says(POD), concurrency=1) as (server, client):
        lines = client.log("quiet", "team", LogOptions(follow=True))
        waiting = asyncio.ensure_future(anext(lines))
        await until(lambda: len(server.requests) == 1)
        assert await get(client) == POD
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await lines.aclose()


# --- logs


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([b"a\nb\n"], [b"a", b"b"], id="lines"),
        pytest.param([b"a\nb"], [b"a", b"b"], id="a last line without an end"),
        pytest.param([b"\n\na\n"], [b"", b"", b"a"], id="empty lines"),
        pytest.param([b"a\r\nb\r\n"], [b"a\r", b"b\r"], id="Windows' line ends"),
        pytest.param([b"10%\r20%\r", b"30%\n"], [b"10%\r20%\r30%"], id="a progress bar"),
        pytest.param([b"\xff\x00\n"], [b"\xff\x00"], id="no text"),
        pytest.param([b"a", b"b", b"\n", b"c"], [b"ab", b"c"], id="in pieces"),
    ],
)
async def test_the_lines_of_a_log(chunks, lines):
    assert await logged(*chunks) == lines


async def test_a_log_says_which_part_is_wanted():
    async with talking(streams(b"a\n")) as (server, client):
        await read(client.log("x", "team", LogOptions(container="main", tail_lines=5)))
        assert server.seen == ["GET /api/v1/namespaces/team/pods/x/log?container=main&tailLines=5"]


async def test_a_log_that_breaks_gives_what_there_was():
    async with (
        talking(streams(b"a\nb", then=cuts)) as (_, client),
        aclosing(client.log("x", "team")) as stream,
    ):
        assert await anext(stream) == b"a"
        with pytest.raises(errors.ConnectionLost):
            await anext(stream)


async def test_a_pod_without_a_log_is_an_error():
    refusal = {"reason": "BadRequest", "message": "waiting to start"}
    async with talking(says(refusal, 400)) as (_, client):
        with pytest.raises(errors.BadRequest, match="waiting to start"):
            await read(client.log("x", "team"))
