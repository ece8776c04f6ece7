"""The cluster behind a socket passes the contract of every client."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec import UNSET

from mpi_operator.kube import errors
from mpi_operator.kube.client import WatchOptions
from mpi_operator.kube.resources import CONFIG_MAPS, Resource
from mpi_operator.local import socket_address
from mpi_operator.local.apiserver.cluster import LocalCluster
from mpi_operator.local.apiserver.served_kinds import Kind, Scale
from mpi_operator.local.socket import socket_messages
from mpi_operator.local.socket.socket_client import RemoteCluster
from mpi_operator.local.socket.socket_server import serving
from tests.contract.client import ClientContract, Talker, config_map
from tests.support.waiting import until
from tests.support.widgets import WIDGETS
from tests.unit.local.talking import GivenLogs


@pytest.fixture
def logs() -> GivenLogs:
    return GivenLogs()


@pytest.fixture
def cluster(logs: GivenLogs) -> LocalCluster:
    scale = Scale(".spec.replicas", ".status.replicas")
    return LocalCluster([Kind(WIDGETS, has_status=True, scale=scale)], logs=logs.read)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    directory = tmp_path / "run"
    directory.mkdir(mode=0o700)
    return directory


@pytest.fixture
async def client(cluster: LocalCluster, run: Path) -> AsyncIterator[RemoteCluster]:
    async with serving(cluster, run):
        yield RemoteCluster(run)


class TestRemoteCluster(ClientContract):
    @pytest.fixture
    def namespace(self) -> str:
        return "here"

    @pytest.fixture
    def widgets(self) -> Resource:
        return WIDGETS

    @pytest.fixture
    def talker(self, cluster: LocalCluster, logs: GivenLogs) -> Talker:
        return logs.talker(cluster)

    async def test_a_line_of_a_log_may_be_any_bytes(self, client, namespace, talker):
        name = await talker(namespace, b"\xff\x00 no text")
        assert [line async for line in client.log(name, namespace)] == [b"\xff\x00 no text"]


async def refusal(run: Path, line: bytes) -> errors.Status:
    """The error that the server answers to these bytes."""
    reader, writer = await asyncio.open_unix_connection(run / socket_messages.SOCKET)
    writer.write(line)
    answer = socket_messages.decode_answer(await reader.readline())
    writer.close()
    assert answer.end is not UNSET
    return answer.end


def listeners() -> int:
    """How many connections are being served."""
    return len([task for task in asyncio.all_tasks() if "_respond" in repr(task.get_coro())])


async def test_only_the_owner_can_connect(client, run):
    assert stat.S_IMODE((run / socket_messages.SOCKET).stat().st_mode) == 0o600


async def test_the_socket_is_removed(cluster, run):
    async with serving(cluster, run):
        assert (run / socket_messages.SOCKET).is_socket()
    assert list(run.iterdir()) == []


@pytest.mark.parametrize("has_descriptors", [True, False], ids=["descriptor", "link"])
async def test_the_path_of_a_run_may_be_long(cluster, run, monkeypatch, has_descriptors):
    if not has_descriptors:
        monkeypatch.setattr(socket_address, "_DESCRIPTORS", Path("/nowhere"))
    directory = run.joinpath(*["a-long-name" * 4] * 5)
    directory.mkdir(parents=True)
    descriptors = len(os.listdir("/proc/self/fd"))
    async with serving(cluster, directory):
        await RemoteCluster(directory).create(CONFIG_MAPS, config_map("a", "here"))
    await until(lambda: len(os.listdir("/proc/self/fd")) == descriptors)
    assert list(directory.iterdir()) == []


async def test_a_run_without_a_socket_does_not_answer(run):
    with pytest.raises(errors.NotSent, match="run run does not answer"):
        await RemoteCluster(run).list(CONFIG_MAPS)


async def test_a_socket_without_a_server_does_not_answer(run):
    server = await asyncio.start_unix_server(lambda *_: None, run / socket_messages.SOCKET)
    server.close()
    with pytest.raises(errors.NotSent):
        await RemoteCluster(run).list(CONFIG_MAPS)


async def test_a_watch_ends_with_its_connection(client):
    events = client.watch(CONFIG_MAPS, "here", WatchOptions(initial_events=True))
    await anext(events)
    assert listeners() == 1
    await events.aclose()
    await until(lambda: listeners() == 0, 5)


async def test_watches_end_with_the_run(cluster, run):
    async with serving(cluster, run):
        events = RemoteCluster(run).watch(CONFIG_MAPS, "here", WatchOptions(initial_events=True))
        await anext(events)
    with pytest.raises(errors.ConnectionLost, match="has ended"):
        await anext(events)


@pytest.mark.parametrize(
    "line",
    [
        b"hello\n",
        b"{}\n",
        b'{"verb": "__init__"}\n',
        b'{"verb": "get", "resource": 7, "name": "a"}\n',
        b'{"verb": "list", "resource": {}, "label_selector": "a=b"}\n',
        b'{"verb": "get", "resource": ' + b"[" * 100_000 + b"\n",
        b"\xff\n",
    ],
    ids=["text", "no verb", "no such verb", "wrong type", "another version", "deep", "no text"],
)
async def test_an_invalid_request_is_refused_and_the_next_is_served(client, run, line):
    assert (await refusal(run, line)).reason == "BadRequest"
    created = await client.create(CONFIG_MAPS, config_map("a", "here"))
    assert created["metadata"]["uid"]


async def test_a_name_that_cannot_be_in_a_url_is_a_bad_request(client, run):
    nameless = socket_messages.Get(resource=CONFIG_MAPS, name="..", namespace="here")
    assert (await refusal(run, socket_messages.encode(nameless) + b"\n")).reason == "BadRequest"


async def test_a_request_that_is_too_long_is_refused(client):
    text = "x" * socket_messages.MAX_REQUEST
    with pytest.raises((errors.TooLarge, errors.ConnectionLost)):
        await client.create(CONFIG_MAPS, config_map("a", "here") | {"data": {"long": text}})


async def test_a_connection_without_a_request_disturbs_no_other(client, run):
    _, writer = await asyncio.open_unix_connection(run / socket_messages.SOCKET)
    writer.close()
    created = await client.create(CONFIG_MAPS, config_map("a", "here"))
    assert created["metadata"]["uid"]


async def test_an_unexpected_exception_is_an_internal_error(client, cluster, caplog):
    cluster.list = cluster.pages = None  # a bug in the server
    with pytest.raises(errors.ServerError, match="not callable"):
        await client.list(CONFIG_MAPS)
    assert "Request from another shell failed" in caplog.text
