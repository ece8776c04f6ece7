"""One request over a real wire: what reaches the server, and how failures are sorted."""

import asyncio
import socket
import ssl
import traceback
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from mpi_operator.kube import errors, requests
from mpi_operator.kube.config import TLS, Config, Credential
from mpi_operator.kube.config.config import FixedCredentials
from mpi_operator.kube.requests import Request
from mpi_operator.kube.resources import PODS
from mpi_operator.kube.transport import Timeouts, Transport
from tests.support.api_server import breaks_off, closes, cuts, hangs, says, serving, streams
from tests.unit.kube.config.pki import authority

POD = {"metadata": {"name": "x", "namespace": "team"}}
GET = requests.get(PODS, "x", "team", "")
POST = requests.create(PODS, POD)
PUT = requests.replace(PODS, POD, "")
DELETE = Request("delete", "pods", "DELETE", "/api/v1/namespaces/team/pods/x", body=b"{}")
PATCH = requests.patch(PODS, "x", {}, "team", "")
EVERY = pytest.mark.parametrize(
    "request_", [GET, POST, PUT, PATCH, DELETE], ids=lambda request: request.method
)
NOBODY = Credential()


@asynccontextmanager
async def transport_to(url, *, tls=None, proxy=None, connect=5.0):
    config = Config(url, "default", tls or TLS(ca=authority().pem), FixedCredentials(NOBODY), proxy)
    async with Transport(config, Timeouts(connect=connect), "test/1") as transport:
        yield transport


@asynccontextmanager
async def connected(*answers, **options):
    """A server with these answers, and a transport to it."""
    async with serving(*answers) as server, transport_to(server.url, **options) as transport:
        yield server, transport


@asynccontextmanager
async def listening(handle):
    """A server below HTTP."""
    tasks: set[Any] = set()

    async def serve(reader, writer):
        tasks.add(asyncio.current_task())
        try:
            await handle(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


async def send(transport, request=GET, credential=NOBODY, timeout=5.0):
    return await transport.send(request, credential, timeout)


# --- what is sent


@EVERY
async def test_code_and_body_of_a_good_answer(request_):
    async with connected(says(b"hello", 201)) as (_, transport):
        assert await send(transport, request_) == (201, b"hello")


async def test_the_server_sees_who_asks_and_what_for():
    async with connected(says()) as (server, transport):
        await send(transport, PATCH, Credential((("Authorization", "Bearer abc"),)))
        headers = server.requests[0].headers
        assert headers["Authorization"] == "Bearer abc"
        assert headers["User-Agent"] == "test/1"
        assert headers["Accept"] == "application/json"
        assert headers["Content-Type"] == "application/merge-patch+json"


async def test_headers_that_repeat_are_all_sent():
    groups = tuple(("Impersonate-Group", name) for name in ("red", "blue"))
    async with connected(says()) as (server, transport):
        await send(transport, GET, Credential((("Impersonate-User", "eve"), *groups)))
        assert server.requests[0].headers.getall("Impersonate-Group") == ["red", "blue"]


async def test_a_read_has_no_content_type():
    async with connected(says()) as (server, transport):
        await send(transport, GET)
        assert "Content-Type" not in server.requests[0].headers


@pytest.mark.parametrize("name", ["a%b", "a?b", "a b", "a#b", "a/b", "é", "a+b", "%41", "a&b=c"])
async def test_a_name_arrives_as_it_is(name):
    async with connected(says()) as (server, transport):
        await send(transport, requests.get(PODS, name, "team", ""))
        quoted = server.requests[0].rel_url.raw_path.rsplit("/", 1)[1]
        assert server.requests[0].rel_url.raw_parts[-2:] == ("pods", quoted)
        assert server.requests[0].path == f"/api/v1/namespaces/team/pods/{name}"


@pytest.mark.parametrize("value", ["a in (b, c)", "a=b&limit=1", "%41+b", "é", "a;b", "a#b"])
async def test_a_query_arrives_as_it_is(value):
    request = Request("list", "pods", "GET", "/api/v1/pods", {"labelSelector": value})
    async with connected(says()) as (server, transport):
        await send(transport, request)
        assert dict(server.requests[0].query) == {"labelSelector": value}


async def test_a_server_may_live_below_a_path():
    async with serving(says()) as server, transport_to(f"{server.url}/k8s/one") as transport:
        await send(transport, GET)
        assert server.seen == ["GET /k8s/one/api/v1/namespaces/team/pods/x"]


@pytest.mark.parametrize("size", [0, 2**16, 3 * 2**20])
async def test_a_body_arrives_whole(size):
    heard = []

    async def handle(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        assert f"Content-Length: {size}\r\n".encode() in head
        heard.append(await reader.readexactly(size))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")

    request = Request("update", "pods", "PUT", "/api/v1/pods", body=b"x" * size)
    async with listening(handle) as address, transport_to(f"http://{address}") as transport:
        assert await send(transport, request) == (200, b"hi")
    assert heard == [b"x" * size]


async def test_a_new_credential_is_shown_from_then_on():
    async with connected(says()) as (server, transport):
        for token in ("old", "new", "new"):
            await send(transport, GET, Credential((("Authorization", token),)))
        assert [each.headers["Authorization"] for each in server.requests] == ["old", "new", "new"]


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        pytest.param("/version\r\nEvil: yes", (), id="in a path"),
        pytest.param("/version", (("Impersonate-User", "eve\r\nEvil: yes"),), id="in a header"),
    ],
)
async def test_no_header_can_be_injected(path, headers):
    async with connected(says()) as (server, transport):
        with pytest.raises(ValueError, match="control character"):
            await send(transport, requests.raw(path), Credential(headers))
        assert server.seen == []


async def test_connections_are_kept():
    async with connected(says()) as (server, transport):
        for _ in range(5):
            await send(transport, POST)
        assert len(server.connections) == 1


async def test_no_cookie_is_sent_back():
    async with connected(says(Set_Cookie="a=b; Path=/")) as (server, transport):
        await send(transport)
        await send(transport)
        assert "Cookie" not in server.requests[1].headers


async def test_a_transport_that_is_not_open_says_so():
    transport = Transport(
        Config("http://127.0.0.1", "default", TLS(), FixedCredentials(NOBODY)), Timeouts(), ""
    )
    with pytest.raises(RuntimeError, match="inside 'async with'"):
        await send(transport)
    async with transport:
        pass
    with pytest.raises(RuntimeError, match="inside 'async with'"):
        await send(transport)


# --- answers that are none


@pytest.mark.parametrize(
    ("code", "error"),
    [(404, errors.NotFound), (429, errors.TooManyRequests), (500, errors.ServerError)],
)
async def test_a_refusal_is_an_api_error(code, error):
    async with connected(says({"message": "no"}, code, Retry_After="7")) as (_, transport):
        with pytest.raises(error, match="no") as raised:
            await send(transport)
        assert raised.value.retry_after == 7


async def test_a_page_of_a_proxy_is_quoted():
    async with connected(says(b"<html>Bad Gateway</html>", 502)) as (_, transport):
        with pytest.raises(errors.ServerError, match="HTTP 502: <html>Bad Gateway</html>"):
            await send(transport)


@pytest.mark.parametrize("code", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed(code):
    async with connected(says(b"", code, Location="/elsewhere")) as (server, transport):
        with pytest.raises(errors.ApiError, match=f"HTTP {code}"):
            await send(transport, GET, Credential((("Authorization", "Bearer abc"),)))
        assert len(server.seen) == 1


async def test_a_refusal_leaves_the_connection_in_use():
    async with connected(says({}, 404)) as (server, transport):
        for _ in range(3):
            with pytest.raises(errors.NotFound):
                await send(transport)
        assert len(server.connections) == 1


async def test_an_answer_may_be_announced():
    async def handle(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        for hint in (b"100 Continue", b"103 Early Hints"):
            writer.write(b"HTTP/1.1 %b\r\n\r\n" % hint)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")

    async with listening(handle) as address, transport_to(f"http://{address}") as transport:
        assert await send(transport) == (200, b"hi")


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"Connection: close\r\nContent-Length: 2", id="that says so"),
        pytest.param(b"Content-Type: text/plain", id="that ends with the connection"),
    ],
)
async def test_an_answer_may_be_the_last_of_its_connection(head):
    connections = []

    async def handle(reader, writer):
        connections.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n%b\r\n\r\nhi" % head)

    async with listening(handle) as address, transport_to(f"http://{address}") as transport:
        assert await send(transport) == (200, b"hi")
        assert await send(transport) == (200, b"hi")
    assert len(connections) == 2


# --- broken connections


@pytest.mark.parametrize("breaks", [cuts, closes, breaks_off], ids=lambda each: each.__name__)
@EVERY
async def test_a_connection_that_breaks_is_lost_and_nothing_is_sent_twice(request_, breaks):
    async with connected(breaks) as (server, transport):
        with pytest.raises(errors.ConnectionLost):
            await send(transport, request_)
        assert len(server.seen) == 1


@pytest.mark.parametrize("breaks", [cuts, closes, breaks_off], ids=lambda each: each.__name__)
@EVERY
async def test_a_kept_connection_that_breaks_is_lost_and_nothing_is_sent_twice(request_, breaks):
    # aiohttp itself would send PUT and DELETE again.
    async with connected(says(), breaks) as (server, transport):
        await send(transport)
        with pytest.raises(errors.ConnectionLost):
            await send(transport, request_)
        assert len(server.seen) == 2
        assert len(server.connections) == 1


@EVERY
async def test_a_refused_connection_means_not_sent(request_):
    async with transport_to(f"http://127.0.0.1:{free_port()}") as transport:
        with pytest.raises(errors.NotSent, match=f"{request_.verb} http://127.0.0.1:"):
            await send(transport, request_)


async def test_an_unknown_host_means_not_sent():
    async with transport_to("http://nobody.invalid") as transport:
        with pytest.raises(errors.NotSent):
            await send(transport, timeout=60)  # a lost packet of DNS takes 5s


@EVERY
async def test_a_hang_ends_with_the_time(request_):
    async with connected(hangs) as (server, transport):
        with pytest.raises(errors.DeadlineExceeded, match="timed out waiting for the response"):
            await send(transport, request_, timeout=2)
        assert len(server.seen) == 1


@pytest.mark.looptime
async def test_a_long_time_limit_is_kept_to_the_millisecond():
    # aiohttp rounds those over five seconds up to a whole one.
    async with connected(hangs, connect=100) as (_, transport):
        started = asyncio.get_running_loop().time()
        with pytest.raises(errors.DeadlineExceeded):
            await send(transport, timeout=7.25)
        assert asyncio.get_running_loop().time() - started == pytest.approx(7.25, abs=0.01)


async def test_what_has_not_left_in_time_does_not_leave_later():
    size, given_up, heard = 64 * 2**20, asyncio.Event(), bytearray()
    ended = asyncio.Event()

    async def handle(reader, writer):
        await given_up.wait()
        with suppress(OSError):
            while chunk := await reader.read(2**20):
                heard.extend(chunk)
        ended.set()

    request = Request("update", "pods", "PUT", "/api/v1/pods", body=b"x" * size)
    async with listening(handle) as address, transport_to(f"http://{address}") as transport:
        with pytest.raises(errors.DeadlineExceeded):
            await send(transport, request, timeout=0.5)
        given_up.set()
        async with asyncio.timeout(20):
            await ended.wait()
    assert len(heard) < size


async def test_a_hang_in_the_middle_ends_with_the_time():
    async with connected(streams(b"half", then=hangs)) as (_, transport):
        with pytest.raises(errors.DeadlineExceeded):
            await send(transport, timeout=0.05)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"hello\r\n\r\n", id="no HTTP"),
        pytest.param(b"HTTP/1.1 2x0 OK\r\n\r\n", id="a code that is no number"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", id="a negative length"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", id="odd chunks"
        ),
        pytest.param(b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 100_000, id="endless headers"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
            id="zipped nonsense",
        ),
        pytest.param(b"", id="nothing"),
    ],
)
async def test_nonsense_means_lost(answer):
    async def handle(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)

    async with listening(handle) as address, transport_to(f"http://{address}") as transport:
        with pytest.raises(errors.ConnectionLost):
            await send(transport)


# --- TLS


def server_context(*hosts):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pair = authority().sign("server", *hosts)
    return context, pair


@pytest.fixture
def certified(tmp_path):
    """A context of a server that is called `localhost`."""
    context, pair = server_context("localhost")
    file = tmp_path / "server.pem"
    file.write_text(pair.certificate + pair.key)
    context.load_cert_chain(file)
    return context


@pytest.mark.parametrize(
    "tls",
    [
        pytest.param(TLS(ca=authority().pem), id="whom we trust"),
        pytest.param(TLS(insecure=True), id="anybody"),
    ],
)
async def test_a_server_that_is_trusted(certified, tls):
    async with (
        serving(says(b"hi"), tls=certified) as server,
        transport_to(server.url, tls=tls) as t,
    ):
        assert await send(t) == (200, b"hi")


@pytest.mark.parametrize(
    "tls",
    [
        pytest.param(TLS(ca=authority("another CA").pem), id="signed by another CA"),
        pytest.param(TLS(ca=authority().pem, server_name="other"), id="of another name"),
    ],
)
@EVERY
async def test_a_server_that_is_not_trusted(certified, tls, request_):
    async with serving(says(), tls=certified) as server, transport_to(server.url, tls=tls) as t:
        with pytest.raises(errors.Untrusted):
            await send(t, request_)
        assert server.seen == []


async def test_a_server_that_speaks_no_tls_is_not_trusted():
    async with serving(says()) as server:
        url = server.url.replace("http://", "https://")
        async with transport_to(url) as transport:
            with pytest.raises(errors.NotSent):
                await send(transport)


async def test_a_handshake_that_is_cut_off_may_work_next_time():
    async def handle(reader, writer):
        await reader.read(1)
        writer.transport.abort()

    async with listening(handle) as address, transport_to(f"https://{address}") as transport:
        with pytest.raises(errors.NotSent) as raised:
            await send(transport)
        assert not isinstance(raised.value, errors.Untrusted)


async def test_a_handshake_that_hangs_means_not_sent():
    async def handle(reader, writer):
        await reader.read()

    async with (
        listening(handle) as address,
        transport_to(f"https://{address}", connect=0.05) as transport,
    ):
        with pytest.raises(errors.NotSent):
            await send(transport)


# --- proxies


async def test_a_proxy_that_refuses_means_not_sent_and_its_password_stays_secret():
    async def handle(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")

    async with listening(handle) as address:
        proxy = f"http://me:s3cr3t@{address}"
        async with transport_to("https://api.invalid", proxy=proxy) as transport:
            with pytest.raises(errors.NotSent) as raised:
                await send(transport)
    assert "the proxy answered 407" in str(raised.value)
    assert "s3cr3t" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize("request_", [GET, PUT], ids=["a read", "a write"])
async def test_without_tls_a_proxy_gets_the_whole_address(request_):
    heard = []

    async def handle(reader, writer):
        heard.append((await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")

    async with listening(handle) as address:
        proxy = f"http://me:s3cr3t@{address}"
        async with transport_to("http://api.invalid", proxy=proxy) as transport:
            assert await send(transport, request_) == (200, b"hi")
    line, *headers = heard[0]
    assert line.startswith(f"{request_.method} http://api.invalid{request_.path}")
    assert any(header.startswith("Proxy-Authorization: Basic ") for header in headers)


async def test_through_a_proxy_too_nothing_is_sent_twice():
    heard = []

    async def handle(reader, writer):
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        heard.append(await reader.readuntil(b"\r\n\r\n"))

    async with (
        listening(handle) as address,
        transport_to("http://api.invalid", proxy=f"http://{address}") as transport,
    ):
        await send(transport)
        with pytest.raises(errors.ConnectionLost):
            await send(transport, DELETE)
    assert len(heard) == 2


# --- long answers


async def test_a_stream_is_read_as_it_comes():
    async with (
        connected(streams(b"a", b"b")) as (_, transport),
        transport.stream(GET, NOBODY, 5.0, 5.0) as (code, content),
    ):
        assert (code, await content.read()) == (200, b"ab")


async def test_a_stream_that_is_silent_ends():
    async with connected(streams(b"a", then=hangs)) as (_, transport):
        with pytest.raises(errors.DeadlineExceeded):
            async with transport.stream(GET, NOBODY, 5.0, 0.05) as (_, content):
                await content.read()


async def test_a_stream_that_does_not_begin_ends():
    async with connected(hangs) as (_, transport):
        with pytest.raises(errors.DeadlineExceeded):
            async with transport.stream(GET, NOBODY, 0.05, 5.0):
                pass


async def test_once_begun_a_stream_may_last():
    async with (
        connected(streams(b"a", then=hangs)) as (_, transport),
        transport.stream(GET, NOBODY, 2.0, 30.0) as (_, content),
    ):
        await content.readany()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(content.readany(), 2.5)  # longer than it may take to begin


@pytest.mark.parametrize(
    ("request_", "sent"),
    [(GET, None), (POST, "1.500s"), (PUT, "1.500s"), (DELETE, "1.500s")],
    ids=["a read", "a create", "a replacement", "a deletion"],
)
async def test_a_write_carries_the_timeout_of_the_server(request_, sent):
    async with connected(says(POD)) as (server, transport):
        await send(transport, request_, timeout=1.5)
        assert server.requests[0].query.get("timeout") == sent


async def test_a_stream_that_breaks_is_lost():
    async with connected(streams(b"a", then=cuts)) as (_, transport):
        with pytest.raises(errors.ConnectionLost):
            async with transport.stream(GET, NOBODY, 5.0, 5.0) as (_, content):
                await content.read()


async def test_a_stream_that_is_left_gives_its_connection_back():
    async with connected(streams(b"a", then=hangs)) as (_, transport):
        async with transport.stream(GET, NOBODY, 5.0, 5.0):
            pass
        assert not transport._session.connector._acquired


async def test_a_stream_that_is_refused_is_an_api_error():
    async with connected(says({"message": "no"}, 403)) as (_, transport):
        with pytest.raises(errors.Forbidden):
            async with transport.stream(GET, NOBODY, 5.0, 5.0):
                pass


@pytest.mark.parametrize("answer", [hangs, streams(b"a", then=hangs)], ids=["opening", "reading"])
async def test_cancelling_gives_the_connection_back(answer):
    async with connected(answer) as (server, transport):
        sending = asyncio.create_task(send(transport))
        while not server.seen:
            await asyncio.sleep(0)
        sending.cancel()
        await asyncio.wait([sending])
        assert not transport._session.connector._acquired
