import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from devcluster import process
from devcluster.process import Process
from tests.support.waiting import block_until

Start = Callable[..., Process]


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def found(pid: int) -> Process:
    vitals = process.vitals_of(pid)
    assert vitals is not None
    return Process("found", [], pid, vitals.born, Path(os.devnull))


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Start]:
    started: list[Process] = []

    def start(*argv: str) -> Process:
        log = tmp_path / "log"
        started.append(
            process.start("dummy", argv, directory=tmp_path, env=dict(os.environ), log=log)
        )
        return started[-1]

    yield start
    for each in started:
        each.kill()


def test_a_stopped_process_is_gone(run):
    sleeper = run("sleep", "1000")
    assert sleeper.is_alive
    sleeper.stop()
    assert not sleeper.is_alive
    assert process.vitals_of(sleeper.pid) is None


def test_stopping_twice_is_fine(run):
    sleeper = run("sleep", "1000")
    sleeper.stop()
    sleeper.stop()  # raises if it has to be alive
    assert not sleeper.is_alive


def test_a_process_that_will_not_stop_is_killed(run):
    stubborn = run("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done")
    block_until(lambda: "ready" in stubborn.log.read_text())
    stubborn.stop(grace_seconds=0.1)
    assert stubborn.exit_code == -9


def test_its_children_end_with_it(run):
    parent = run("sh", "-c", "sleep 1000 & echo $!; wait")
    block_until(lambda: parent.log.read_text().endswith("\n"))
    child = found(int(parent.log.read_text()))
    parent.stop()
    block_until(lambda: not child.is_alive)


def test_the_end_of_a_wrapper_is_the_end_of_what_it_wraps(run):
    wrapper = run("sh", "-c", "sleep 1000; true")
    block_until(lambda: len(wrapper.family()) == 2)
    _, wrapped = wrapper.family()
    wrapper.kill()
    assert not wrapped.is_alive
    assert wrapper.family() == [wrapper]


def test_children_that_outlive_their_parent_are_killed(run):
    parent = run("sh", "-c", "sleep 1000 & echo $!; exit 3")
    block_until(lambda: not parent.is_alive)
    child = found(int(parent.log.read_text()))
    parent.kill()
    block_until(lambda: not child.is_alive)
    assert parent.exit_code == 3


def test_a_paused_process_stands_still_until_it_is_resumed(run):
    sleeper = run("sleep", "1000")
    sleeper.pause()
    assert state_of(sleeper.pid) == "T"
    sleeper.resume()
    block_until(lambda: state_of(sleeper.pid) == "S")


def test_a_paused_process_can_be_stopped_in_an_orderly_way(run):
    sleeper = run("sleep", "1000")
    sleeper.pause()
    sleeper.stop()
    assert sleeper.exit_code == -15


def test_a_process_that_reuses_the_pid_of_a_dead_one_is_not_touched(run):
    other = run("sleep", "1000")
    dead = replace(other, born="an-earlier-boot/1", _child=None)
    assert not dead.is_alive
    dead.stop()
    dead.kill()
    assert other.is_alive


def test_a_record_finds_the_process_again(run):
    sleeper = run("sleep", "1000")
    again = Process.from_record(sleeper.to_record())
    assert again == sleeper
    again.kill()
    assert not sleeper.is_alive


def test_waiting_is_not_endless(run):
    assert not run("sleep", "1000").wait(0.01)


def test_vitals_tell_age_and_size(run):
    sleeper = run("sleep", "1000")
    assert 0 <= sleeper.vitals().uptime_seconds < 60
    block_until(lambda: sleeper.vitals().memory_bytes > 0)  # the kernel counts in batches
