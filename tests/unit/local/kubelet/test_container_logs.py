"""Logs: files that containers write themselves."""

import asyncio
import os
import time
from datetime import datetime
from pathlib import Path

import pytest

from mpi_operator.kube.client import LogOptions
from mpi_operator.local.kubelet.container_logs import ContainerLogs, recorded_lines
from mpi_operator.local.kubelet.error_pipe import ErrorPipe
from mpi_operator.local.kubelet.log_times import SizeHistory, saved
from tests.support.waiting import until


def write(logs, text):
    descriptor = logs.open()
    os.write(descriptor, text.encode())
    return descriptor


async def lines(logs, **options):
    return [line.decode() async for line in logs.lines(LogOptions(**options))]


@pytest.fixture
def logs(tmp_path):
    return ContainerLogs(tmp_path / "logs")


async def test_lines_without_their_ends(logs):
    os.close(write(logs, "a\nb\n\nc"))
    assert await lines(logs) == ["a", "b", "", "c"]


NOISE = "[vm:7] plm:ssh: Warning: setpgid(6,6) failed in parent with errno=EACCES(13)\n"


async def test_what_an_mpi_prints_by_mistake_is_not_read(logs, tmp_path):
    os.close(write(logs, f"{NOISE}a\n{NOISE}b\n{NOISE}{NOISE}"))
    logs.end()
    assert await lines(logs) == await lines(logs, follow=True) == ["a", "b"]
    assert await lines(logs, tail_lines=1) == ["b"]
    assert await lines(logs, tail_lines=2) == await lines(logs, tail_lines=9) == ["a", "b"]
    assert await lines(logs, tail_lines=0) == []
    assert [line.split(" ")[1] for line in await lines(logs, timestamps=True)] == ["a", "b"]
    assert logs.last_lines() == "a\nb\n"
    assert [line async for line in recorded_lines(tmp_path / "logs" / "0.log")] == [b"a", b"b"]


async def test_standard_error_is_told_apart_in_one_log(logs):
    out = write(logs, "a\n")
    err = logs.open_stderr()
    os.write(err, b"b\n")
    os.close(err)
    logs.close_stderr()
    os.write(out, b"c\n")
    os.close(out)
    logs.end()
    chunks = [(each.printed, each.is_stderr) async for each in logs.output()]
    assert chunks == [(b"a\n", False), (b"b\n", True), (b"c\n", False)]
    assert await lines(logs) == ["a", "b", "c"]


async def test_standard_error_that_goes_on_is_one_range(tmp_path):
    log = tmp_path / "log"
    log.touch()
    pipe = ErrorPipe(log)
    os.write(pipe.writing, b"12345")
    await until(lambda: log.stat().st_size == 5)
    os.write(pipe.writing, b"67890")
    await until(lambda: log.stat().st_size == 10)
    os.close(pipe.writing)
    pipe.close()
    assert pipe.ranges == [(0, 10)]


async def test_a_full_disk_loses_standard_error_and_nothing_else():
    pipe = ErrorPipe(Path("/dev/full"))
    os.write(pipe.writing, b"lost")
    os.close(pipe.writing)
    pipe.close()
    assert pipe.ranges == []


async def test_nothing_printed_yet(logs):
    assert await lines(logs) == []


@pytest.mark.parametrize(
    ("text", "tail", "expected"),
    [
        ("a\nb\nc\n", 2, ["b", "c"]),
        ("a\nb\nc", 2, ["b", "c"]),
        ("a\nb\n", 9, ["a", "b"]),
        ("a\n", 0, []),
        ("", 3, []),
        pytest.param("x\n" * 100_000 + "end\n", 1, ["end"], id="a large one"),
        pytest.param("y" * 200_000 + "\nend\n", 2, ["y" * 200_000, "end"], id="long lines"),
    ],
)
async def test_the_last_lines(logs, text, tail, expected):
    os.close(write(logs, text))
    assert await lines(logs, tail_lines=tail) == expected


async def test_the_start_before(logs):
    os.close(write(logs, "first\n"))
    os.close(write(logs, "second\n"))
    assert await lines(logs) == ["second"]
    assert await lines(logs, previous=True) == ["first"]


async def test_only_two_starts_are_kept(logs, tmp_path):
    for number in range(5):
        os.close(write(logs, f"{number}\n"))
    assert sorted(each.name for each in (tmp_path / "logs").iterdir()) == [
        "3.log",
        "3.times",
        "4.log",
    ]


async def test_following_to_the_end(logs):
    seen = []

    async def follow():
        async for line in logs.lines(LogOptions(follow=True)):
            seen.append(line)  # noqa: PERF401 — it is looked at meanwhile

    task = asyncio.create_task(follow())
    descriptor = write(logs, "a\nb")
    await until(lambda: seen == [b"a"])
    os.write(descriptor, b"c\nlast")
    os.close(descriptor)
    logs.end()
    await asyncio.wait_for(task, 5)
    assert seen == [b"a", b"bc", b"last"]


def test_a_clock_knows_about_when(tmp_path):
    file = tmp_path / "0.log"
    history = SizeHistory(file)
    for second, text in ((10, "aaaa"), (20, "bbbb")):
        with file.open("a") as log:
            log.write(text)
        history.note(second)
    assert [history.start_of(second) for second in (5, 10, 15, 25)] == [0, 0, 4, 8]
    assert [history.time_of(offset) for offset in (0, 3, 4, 7, 8)] == [10, 10, 20, 20, None]


async def test_the_message_of_a_failure_is_its_last_lines(logs):
    os.close(write(logs, "".join(f"line {number}\n" for number in range(1000))))
    assert logs.last_lines().endswith("line 998\nline 999\n")
    assert len(logs.last_lines()) <= 2048


async def test_a_log_that_has_ended_has_its_times(logs, tmp_path):
    os.close(write(logs, "a\nb\n"))
    logs.end()
    path = tmp_path / "logs" / "0.log"
    options = LogOptions(timestamps=True, tail_lines=1, since_seconds=60)
    [line] = [each async for each in recorded_lines(path, options)]
    assert line.endswith(b"Z b")
    assert abs(datetime.fromisoformat(line.split()[0].decode()).timestamp() - time.time()) < 60


async def test_times_follow_a_log_that_lost_its_beginning(tmp_path):
    path = tmp_path / "0.log"
    path.write_text("new\n")
    SizeHistory(path, [1.0, 2.0], [100, 104]).shifted(100).save()
    assert saved(path).time_of(0) == 2.0


async def test_a_log_of_a_killed_run_has_one_time(tmp_path):
    path = tmp_path / "0.log"
    path.write_text("a\nb\n")
    os.utime(path, (5, 5))
    assert [line async for line in recorded_lines(path, LogOptions(timestamps=True))] == [
        b"1970-01-01T00:00:05.000Z a",
        b"1970-01-01T00:00:05.000Z b",
    ]
