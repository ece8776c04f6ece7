import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.operators import machine, quiet, usage
from tests.support.waiting import block_until


def test_cpu_is_user_and_system_time():
    fields = " ".join(["S", *["0"] * 10, "150", "50", *["0"] * 20])
    ticks = os.sysconf("SC_CLK_TCK")
    assert usage.cpu_seconds(f"1 (a) b) {fields}") == 200 / ticks


def test_memory_is_the_resident_set():
    assert usage.rss_bytes("Name:\tx\nVmRSS:\t   12 kB\nThreads:\t1\n") == 12288
    assert usage.rss_bytes("Name:\tx\nThreads:\t1\n") == 0


def test_a_process_can_be_read():
    found = usage.of(os.getpid())
    assert found.rss_bytes > 1_000_000
    assert found.cpu_seconds > 0


def test_a_process_that_has_ended_is_reported():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with pytest.raises(usage.Gone, match=str(ended.pid)):
        usage.of(ended.pid)


@pytest.mark.parametrize(
    ("measurements", "last"),
    [
        pytest.param([(0, 0), (1, 0.9), (2, 1.5), (3, 1.51)], 2, id="busy, then at rest"),
        pytest.param([(0, 0), (1, 0.01), (2, 0.02)], 0, id="never busy"),
        pytest.param([(0, 0), (1, 0), (2, 0.5)], 2, id="busy now"),
        pytest.param([(0, 0)], 0, id="one measurement"),
    ],
)
def test_a_process_was_last_busy_at_the_end_of_a_window_with_cpu(measurements, last):
    assert quiet.last_busy(measurements) == last


@pytest.fixture
def run():
    """Starts a process that is gone after the test."""
    started = []

    def start(*command):
        started.append(subprocess.Popen(command))
        return started[-1].pid

    yield start
    for each in started:
        each.kill()
        each.wait()


@pytest.fixture
def short_rest(monkeypatch):
    monkeypatch.setattr(quiet, "_REST", 0.5)


@pytest.mark.usefixtures("short_rest")
async def test_a_process_that_sleeps_is_quiet(run):
    sleeper = run("sleep", "60")
    block_until(lambda: "(sleep) S" in Path(f"/proc/{sleeper}/stat").read_text())
    assert await quiet.seconds_until_quiet(sleeper, time.monotonic(), 30) < 1


SPIN = ("-c", "while True: pass")


async def test_a_process_that_never_rests_is_not_quiet(run):
    spinner = run(sys.executable, *SPIN)
    with pytest.raises(TimeoutError, match="still busy after 4 s"):
        await quiet.seconds_until_quiet(spinner, time.monotonic(), 4)


async def test_a_process_that_gets_no_cpu_is_not_quiet(run):
    cpu = str(min(os.sched_getaffinity(0)))
    run("taskset", "--cpu-list", cpu, sys.executable, *SPIN)
    starved = run("taskset", "--cpu-list", cpu, "nice", "-n", "19", sys.executable, *SPIN)
    with pytest.raises(TimeoutError):
        await quiet.seconds_until_quiet(starved, time.monotonic(), 4)


def test_the_processor_is_named_where_the_kernel_names_it():
    assert machine.processor("processor\t: 0\nmodel name\t: Fast 9000\n") == "Fast 9000"
    assert machine.processor("processor\t: 0\n") != ""


def test_all_memory_counts():
    assert machine.memory_bytes("MemTotal:       2 kB\nMemFree:  1 kB\n") == 2048


@pytest.mark.parametrize(("load", "is_busy"), [(0.3, False), (1.5, True)])
def test_a_machine_with_other_work_is_busy(load, is_busy):
    assert machine.is_busy({"load when it began": load, "cores": 2}) is is_busy
