"""What the server answers, over real TLS connections."""

import asyncio
import gzip
import logging
import os
import socket
import ssl
import time
from contextlib import asynccontextmanager, closing, suppress

import aiohttp
import msgspec
import pytest
from aiohttp.test_utils import make_mocked_request
from prometheus_client import CollectorRegistry

from mpi_operator.api.conversion import UnknownVersion
from mpi_operator.webhook import certificates, conversion_review
from mpi_operator.webhook.admission_response import Admission
from mpi_operator.webhook.connections import Limits
from mpi_operator.webhook.loop_thread import LoopThread
from mpi_operator.webhook.metrics import WebhookMetrics
from mpi_operator.webhook.request_body import Bodies, Refused
from mpi_operator.webhook.server import Decisions, application, served
from mpi_operator.webhook.tls import LiveContext
from tests.support.tls_client import call
from tests.support.waiting import until

NAMES = ("localhost",)


def convert(manifest, version):
    """A conversion that says what it did, with a bug and an object that it refuses."""
    if manifest["metadata"]["name"] == "bug":
        raise KeyError(manifest["metadata"]["annotations"]["secret"])
    if version == "v9":
        raise UnknownVersion("v9 is not a version of MPIJob")
    return {**manifest, "apiVersion": f"kubeflow.org/{version}"}


def validate(request):
    if request.get("object") == "bug":
        raise KeyError("hunter2")
    return Admission(allowed=request.get("object") != "bad", message="spec: bad", warnings=("w",))


def mutate(request):
    return Admission(allowed=True, patch=({"op": "add", "path": "/a", "value": 1},))


class Server:
    """A server with its authority."""

    port = 0

    def __init__(self):
        self.authority = certificates.new_authority(time.time(), 1000)
        self.live = LiveContext()
        self.registry = CollectorRegistry()
        self.serve(self.authority)

    def serve(self, authority):
        pair = certificates.new_serving(authority, NAMES, time.time(), 100)
        self.live.load(pair.certificate, pair.key)

    async def call(self, path, body=None, **options):
        options.setdefault("authorities", [self.authority.certificate])
        return await call(self.port, path, body, **options)

    def count(self, endpoint, outcome):
        labels = {"endpoint": endpoint, "outcome": outcome}
        return self.registry.get_sample_value("mpi_operator_webhook_duration_seconds_count", labels)


@pytest.fixture
async def server():
    server = Server()
    app = application(Decisions(convert, validate, mutate), WebhookMetrics(server.registry))
    async with served(app, server.live, 0, "127.0.0.1") as server.port:
        yield server


def job(name, version="v1", **metadata):
    return {
        "apiVersion": f"kubeflow.org/{version}",
        "kind": "MPIJob",
        "metadata": {"namespace": "team", "name": name, **metadata},
    }


def conversion(*objects, to="kubeflow.org/v2beta1"):
    request = {"uid": "some-uid", "desiredAPIVersion": to, "objects": objects}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "request": request,
    }


def admission(subject):
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": "some-uid", "object": subject},
    }


async def test_all_objects_are_converted_in_their_order(server):
    names = [f"job-{number}" for number in range(300)]
    status, answer = await server.call("/convert", conversion(*map(job, names)))
    assert status == 200
    assert answer == {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "response": {
            "uid": "some-uid",
            "result": {"status": "Success"},
            "convertedObjects": [job(name, "v2beta1") for name in names],
        },
    }
    assert server.count("convert", "success") == 1
    converted = server.registry.get_sample_value(
        "mpi_operator_webhook_converted_objects_total", {"version": "v2beta1"}
    )
    assert converted == 300


async def test_an_empty_list_is_converted(server):
    _, answer = await server.call("/convert", conversion())
    assert answer["response"]["convertedObjects"] == []


@pytest.mark.parametrize(
    ("review", "message"),
    [
        pytest.param(
            conversion(job("a"), to="kubeflow.org/v9"),
            "MPIJob team/a: v9 is not a version of MPIJob",
            id="an unknown version",
        ),
        pytest.param(
            conversion(job("a"), to="batch/v1"), "batch/v1 is not a version of", id="another group"
        ),
        pytest.param(
            conversion(job("a"), job("bug", annotations={"secret": "hunter2"})),
            "MPIJob team/bug: a bug in the conversion to v2beta1",
            id="a bug",
        ),
    ],
)
async def test_one_object_that_cannot_be_converted_fails_the_review(
    server, review, message, caplog
):
    status, answer = await server.call("/convert", review)
    assert (status, answer["response"]["uid"]) == (200, "some-uid")
    assert answer["response"]["result"]["status"] == "Failed"
    assert message in answer["response"]["result"]["message"]
    assert "convertedObjects" not in answer["response"]
    assert server.count("convert", "failed") == 1
    assert "hunter2" not in str([vars(record) for record in caplog.records])
    assert (await server.call("/convert", conversion(job("a"))))[0] == 200, "it goes on"


@pytest.mark.parametrize(
    ("subject", "allowed", "outcome"),
    [pytest.param("good", True, "allowed"), pytest.param("bad", False, "denied")],
)
async def test_admission(server, subject, allowed, outcome):
    status, answer = await server.call("/validate", admission(subject))
    assert status == 200
    assert answer["response"]["uid"] == "some-uid"
    assert answer["response"]["allowed"] is allowed
    assert answer["response"]["warnings"] == ["w"]
    assert server.count("validate", outcome) == 1


async def test_mutation(server):
    _, answer = await server.call("/mutate", admission("any"))
    assert answer["response"]["patchType"] == "JSONPatch"


async def test_a_bug_in_a_decision_is_left_to_the_failure_policy(server, caplog):
    with caplog.at_level(logging.DEBUG):
        status, _ = await server.call("/validate", admission("bug"))
    assert status == 500
    [record] = (each for each in caplog.records if each.name.startswith("mpi_operator"))
    assert (record.error, record.endpoint) == ("KeyError", "validate")
    assert "test_server.py" in record.where
    assert "hunter2" not in str(vars(record))
    assert server.count("validate", "error") == 1


@pytest.mark.parametrize("path", ["/convert", "/validate", "/mutate"])
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"{", id="no JSON"),
        pytest.param(b"\xff\xfe", id="no text"),
        pytest.param(b"[]", id="no object"),
        pytest.param(b"{}", id="no review"),
        pytest.param(b'{"apiVersion":"v1","kind":"Pod","request":{"uid":"a"}}', id="a pod"),
        pytest.param(b'{"apiVersion":"x","kind":"y","request":null}', id="no request"),
        pytest.param(b'{"a":' + b"[" * 100_000, id="too deep"),
    ],
)
async def test_garbage_is_refused(server, path, data):
    status, _ = await server.call(path, data=data)
    assert status == 400
    assert server.count(path[1:], "malformed") == 1


async def test_health_and_nothing_else(server):
    assert await server.call("/healthz") == (200, "ok\n")
    assert (await server.call("/"))[0] == 404
    assert (await server.call("/convert"))[0] == 405


async def test_a_long_list_lets_others_have_a_turn():
    def slow(manifest, version):
        time.sleep(0.002)
        return manifest

    request = conversion_review.Request("uid", "kubeflow.org/v1", [job("a")] * 100)
    turns = 0

    async def turn():
        nonlocal turns
        turns += 1

    await conversion_review.converted(request, slow, turn)
    assert turns >= 5


async def test_a_new_certificate_is_for_new_connections_and_open_ones_live_on(server):
    old, new = server.authority, certificates.new_authority(time.time(), 1000)
    trust = ssl.create_default_context(cadata=old.certificate)
    url = f"https://localhost:{server.port}/healthz"
    async with aiohttp.ClientSession() as session:
        async with session.get(url, ssl=trust) as answer:
            assert await answer.text() == "ok\n"
        server.serve(new)
        async with session.get(url, ssl=trust) as answer:
            assert await answer.text() == "ok\n", "the same connection"
    with pytest.raises(aiohttp.ClientConnectorCertificateError):
        await server.call("/healthz")
    assert (await server.call("/healthz", authorities=[new.certificate]))[0] == 200


async def test_a_pair_that_does_not_fit_changes_nothing(server):
    other = certificates.new_serving(server.authority, NAMES, time.time(), 100)
    with pytest.raises(ssl.SSLError):
        server.live.load(other.certificate, server.authority.key)
    assert (await server.call("/healthz"))[0] == 200


async def test_only_its_own_names_are_served(server):
    with pytest.raises(aiohttp.ClientConnectorCertificateError):
        await server.call("/healthz", name="example.com")


async def test_no_file_is_left_open_by_loading_certificates(server):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        server.serve(server.authority)
    assert len(os.listdir("/proc/self/fd")) == before


async def test_a_port_in_use(server):
    app = application(Decisions(convert, validate, mutate), WebhookMetrics())
    with pytest.raises(OSError, match="in use"):
        async with served(app, server.live, server.port, "127.0.0.1"):
            await asyncio.sleep(0)


@pytest.mark.parametrize("moment", [0.0, 0.01, 0.03])
async def test_connections_in_their_handshake_are_closed_when_it_stops(moment):
    thread = LoopThread(serving, "webhook")
    server = await thread.start()
    async with thread:
        clients = [socket.create_connection(("127.0.0.1", server.port), 10) for _ in range(40)]
        await asyncio.sleep(moment)  # some, all or none of them have been accepted
    for client in clients:
        with client, suppress(ConnectionResetError):
            assert await asyncio.to_thread(client.recv, 1) == b""


# --- limits on what callers may send


@asynccontextmanager
async def serving(seconds=10.0, **limits):
    server, app_bodies = Server(), Bodies(seconds)
    app = application(
        Decisions(convert, validate, mutate), WebhookMetrics(server.registry), app_bodies
    )
    async with served(app, server.live, 0, "127.0.0.1", Limits(**limits)) as server.port:
        yield server


async def connected(server):
    """A connection that has sent nothing yet."""
    context = ssl.create_default_context(cadata=server.authority.certificate)
    return await asyncio.open_connection("localhost", server.port, ssl=context)


def padded(review, size):
    return msgspec.json.encode({**review, "padding": "x" * size})


MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("path", "data", "headers", "status"),
    [
        pytest.param(
            "/convert",
            gzip.compress(msgspec.json.encode(conversion(job("a")))),
            {"Content-Encoding": "gzip"},
            415,
            id="a compressed body",
        ),
        pytest.param("/convert", padded(conversion(), 12 * MIB), {}, 200, id="a long list"),
        pytest.param("/convert", padded(conversion(), 16 * MIB), {}, 413, id="too long a list"),
        pytest.param("/validate", padded(admission("a"), 7 * MIB), {}, 200, id="a large object"),
        pytest.param("/validate", padded(admission("a"), 8 * MIB), {}, 413, id="too large"),
        pytest.param("/mutate", padded(admission("a"), 8 * MIB), {}, 413, id="too large to mutate"),
        pytest.param("/convert", b"{}," * MIB, {}, 413, id="too many values"),
    ],
)
async def test_bodies_are_limited(server, path, data, headers, status):
    assert (await server.call(path, data=data, headers=headers))[0] == status


async def test_a_body_without_a_length_is_limited_as_well(server):
    reader, writer = await connected(server)
    writer.write(b"POST /validate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    writer.write(b"%x\r\n" % (9 * MIB) + b" " * 9 * MIB + b"\r\n0\r\n\r\n")
    assert b" 413 " in await reader.readline()
    writer.transport.abort()


HEAD = b"POST /convert HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n{"


@pytest.mark.parametrize("length", [100, 2 * MIB])
async def test_a_body_that_never_ends_times_out(length):
    async with serving(seconds=0.05) as server:
        reader, writer = await connected(server)
        writer.write(HEAD % length)
        assert b" 408 " in await reader.readline()
        writer.transport.abort()


async def test_large_bodies_wait_for_each_other_and_small_ones_do_not():
    async with serving() as server:
        _, writer = await connected(server)
        writer.write(HEAD % (2 * MIB))
        large = padded(conversion(), 2 * MIB)
        waiting = asyncio.create_task(server.call("/convert", data=large))
        for _ in range(20):
            assert (await server.call("/convert", conversion(job("a"))))[0] == 200
        assert not waiting.done()
        writer.transport.abort()
        assert (await waiting)[0] == 200


async def test_a_large_body_is_refused_if_it_waits_too_long():
    bodies = Bodies(0.05)
    await bodies._large.acquire()
    request = make_mocked_request("POST", "/convert", headers={"Content-Length": str(MIB)})
    with pytest.raises(Refused) as refused:
        async with bodies.read(request, 2 * MIB):
            pass
    assert refused.value.status == 503


async def test_half_a_request_times_out():
    async with serving(head_seconds=0.05) as server:
        reader, writer = await connected(server)
        writer.write(b"POST /convert HTT")
        assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.transport.abort()


async def test_a_connection_that_has_asked_may_be_idle():
    async with serving(head_seconds=0.5) as server:
        reader, writer = await connected(server)
        for _ in range(3):
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"ok\n" in await reader.readuntil(b"ok\n")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.read(), 0.7)
        writer.transport.abort()


async def test_connections_are_limited():
    async with serving(connections=2) as server:
        several = [await connected(server) for _ in range(2)]
        with pytest.raises(aiohttp.ClientError):
            await server.call("/healthz")
        for _, writer in several:
            writer.transport.abort()
        await until(lambda: is_open(server))


async def is_open(server):
    try:
        return (await server.call("/healthz"))[0] == 200
    except aiohttp.ClientError:
        return False


async def test_handshakes_count_as_connections():
    async with serving(connections=2) as server:
        clients = [socket.create_connection(("127.0.0.1", server.port), 10) for _ in range(3)]
        with closing(clients[2]):
            assert await asyncio.to_thread(clients[2].recv, 1) == b""
        for client in clients[:2]:
            client.close()
        await until(lambda: is_open(server))


async def test_what_is_not_http_is_not_logged(server, caplog):
    for garbage in (
        b"\x16\x03\x01 what?\r\n\r\n",
        b"GET / HTTP/9.x\r\n\r\n",
        b"GET /\r\n x\0\r\n\r\n",
    ):
        reader, writer = await connected(server)
        writer.write(garbage)
        await reader.read()
        writer.transport.abort()
    assert not [each for each in caplog.records if each.levelno > logging.DEBUG]
