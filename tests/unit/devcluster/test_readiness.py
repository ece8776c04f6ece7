import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devcluster import process, readiness
from devcluster.endpoint import Endpoint
from devcluster.process import Process
from devcluster.readiness import NotReady, PortTaken

Run = Callable[[str], Process]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    started: list[Process] = []

    def start(script: str) -> Process:
        argv, env = ["sh", "-c", script], dict(os.environ)
        log = tmp_path / "log"
        started.append(process.start("server", argv, directory=tmp_path, env=env, log=log))
        return started[-1]

    yield start
    for each in started:
        each.kill()


def never() -> bool:
    return False


def test_waiting_ends_when_it_is_ready(run):
    answers = iter([False, False, True])
    readiness.wait_until(lambda: next(answers), run("sleep 1000"), 30)
    assert list(answers) == []


def test_a_process_that_ends_fails_the_wait_with_its_log(run):
    with pytest.raises(NotReady, match=r"(?s)server exited with code 7.*no such flag"):
        readiness.wait_until(never, run("echo no such flag; exit 7"), 30)


def test_a_process_that_takes_too_long_fails_the_wait_with_its_log(run):
    server = run("echo waiting for etcd; sleep 1000")
    while "etcd" not in server.log.read_text():
        assert server.is_alive
    with pytest.raises(NotReady, match=r"(?s)not ready after 0s.*waiting for etcd"):
        readiness.wait_until(never, server, 0)


def test_a_port_that_is_taken_is_recognised(run):
    with pytest.raises(PortTaken):
        readiness.wait_until(never, run("echo bind: address already in use; exit 1"), 30)


def test_the_complaints_of_an_earlier_attempt_do_not_count(run):
    first = run("echo bind: address already in use; exit 1")
    assert first.wait(30)
    log_start = first.log.stat().st_size
    with pytest.raises(NotReady, match="no such flag") as failure:
        readiness.wait_until(never, run("echo no such flag; exit 1"), 30, log_start=log_start)
    assert not isinstance(failure.value, PortTaken)


def test_a_server_that_is_not_there_does_not_answer(keyless_endpoint):
    assert not readiness.answers_ok(keyless_endpoint, "/readyz")()


@pytest.fixture
def keyless_endpoint(tmp_path: Path) -> Endpoint:
    return Endpoint("127.0.0.1", 1, ca=tmp_path / "missing.crt")
