"""Whether a container is ready."""

import asyncio

import pytest

from mpi_operator.local.kubelet import probes
from tests.unit.local.kubelet.manifests import make_container


async def no_command(argv):
    raise AssertionError(argv)


async def ask(probe, container=None, execute=no_command):
    target = probes.Target(container or make_container(), "127.0.0.1", execute)
    return await probes.answer(probe, target)


@pytest.mark.parametrize(("code", "ready"), [(0, True), (1, False)])
async def test_by_a_command(code, ready):
    async def execute(argv):
        assert argv == ["check"]
        return code

    assert await ask({"exec": {"command": ["check"]}}, execute=execute) == ready


async def test_by_a_port_that_has_a_name():
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    container = make_container(ports=[{"name": "web", "containerPort": port}])
    assert await ask({"tcpSocket": {"port": "web"}}, container)
    server.close()
    await server.wait_closed()
    assert not await ask({"tcpSocket": {"port": port}})


@pytest.mark.parametrize(("code", "ready"), [(200, True), (302, True), (503, False)])
async def test_by_a_page(code, ready):
    async def serve(reader, writer):
        line = await reader.readline()
        assert line == b"GET /healthz HTTP/1.0\r\n"
        writer.write(f"HTTP/1.1 {code} Whatever\r\n\r\n".encode())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    assert await ask({"httpGet": {"port": port, "path": "/healthz"}}) == ready
    server.close()


async def test_a_probe_that_times_out_fails():
    async def execute(argv):
        await asyncio.sleep(60)

    assert not await ask({"exec": {"command": ["x"]}, "timeoutSeconds": 0.05}, execute=execute)


def test_a_result_changes_after_several_answers():
    thresholds = probes.Thresholds(success_threshold=2, failure_threshold=3)
    heard = [thresholds.add(good) for good in (True, False, True, True, False, False, True)]
    assert heard == [False, False, False, True, True, True, True]
    assert [thresholds.add(False) for _ in range(3)] == [True, True, False]


def answering(*good):
    """Says this, and after that the last of it; when it was asked is in `times`."""
    times: list[float] = []
    left = list(good)

    async def ask(probe):
        times.append(round(asyncio.get_running_loop().time(), 3))
        return left.pop(0) if len(left) > 1 else left[0]

    return ask, times


@pytest.mark.looptime
async def test_a_starting_container_is_probed_often_and_has_its_whole_time():
    probe = {"initialDelaySeconds": 2, "periodSeconds": 10, "failureThreshold": 3}
    ask, times = answering(False, False, True)
    assert await probes.has_started(probe, ask)
    assert times == [2, 2.25, 2.5]
    ask, times = answering(False)
    assert not await probes.has_started(probe, ask)
    assert times[-1] - times[0] == 20


@pytest.mark.looptime
async def test_a_container_is_not_alive_after_several_failures_in_a_row():
    ask, times = answering(True, False, True, False, False)
    await probes.until_not_alive({"periodSeconds": 5, "failureThreshold": 2}, ask)
    assert times == [0, 5, 10, 15, 20]


async def test_a_port_of_a_stand_in_counts_as_open():
    target = probes.Target(make_container(), "127.0.0.1", no_command, is_stand_in=True)
    assert await probes.answer({"tcpSocket": {"port": 1}}, target)
