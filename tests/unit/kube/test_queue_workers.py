import asyncio
import logging

import pytest

from mpi_operator.kube.queue_workers import run_workers
from mpi_operator.kube.workqueue import WorkQueue

pytestmark = pytest.mark.looptime


def make_queue(*keys):
    queue = WorkQueue[str]("test", base_delay=1, max_delay=60, random=lambda: 0.0)
    for key in keys:
        queue.add(key)
    return queue


async def work_until(seconds, queue, handle, concurrency=1):
    """Let workers work, close the queue then, and wait for them."""
    asyncio.get_running_loop().call_later(seconds, queue.close)
    await run_workers(queue, handle, concurrency)


class Diary:
    """A handler that writes down when it saw which key and answers as told."""

    def __init__(self, *answers, takes=0.0):
        self.answers, self.takes = list(answers), takes
        self.seen = []
        self.busy, self.busiest = 0, 0

    async def __call__(self, key):
        self.seen.append((key, asyncio.get_running_loop().time()))
        self.busy += 1
        self.busiest = max(self.busy, self.busiest)
        try:
            await asyncio.sleep(self.takes)
        finally:
            self.busy -= 1
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, BaseException):
            raise answer
        return answer


@pytest.mark.parametrize(
    ("answers", "times"),
    [
        pytest.param([None], [0], id="nothing more to do, so it is left alone"),
        pytest.param([30, None], [0, 30], id="it is requeued when the handler says"),
        pytest.param([0, None], [0, 0], id="at once, if the handler says so"),
        pytest.param([OSError(), OSError()], [0, 1, 3], id="failures bring it back ever later"),
        pytest.param([OSError(), 9, OSError()], [0, 1, 10, 11], id="a success forgets failures"),
    ],
)
async def test_when_a_key_is_reconciled(answers, times):
    handle = Diary(*answers)
    await work_until(100, make_queue("a"), handle)
    assert handle.seen == [("a", time) for time in times]


@pytest.mark.parametrize("concurrency", [1, 3, 10])
async def test_so_many_are_handled_at_a_time(concurrency):
    handle = Diary(takes=1)
    await work_until(100, make_queue(*map(str, range(20))), handle, concurrency)
    assert len(handle.seen) == 20
    assert handle.busiest == concurrency


async def test_a_failure_is_logged_once_with_the_key(caplog):
    await work_until(0.5, make_queue("team/pi"), Diary(OSError("disk full")))
    (line,) = caplog.records
    assert (line.levelno, line.queue, line.key, line.failures) == (
        logging.ERROR,
        "test",
        "team/pi",
        1,
    )
    assert "disk full" in caplog.text


async def test_one_key_that_fails_stops_no_other():
    handle = Diary(OSError())
    await work_until(0.5, make_queue("a", "b", "c"), handle)
    assert [key for key, _ in handle.seen] == ["a", "b", "c"]


async def test_a_cancellation_inside_a_handler_is_a_failure_like_any_other(caplog):
    handle = Diary(asyncio.CancelledError())
    await work_until(100, make_queue("a"), handle)
    assert handle.seen == [("a", 0), ("a", 1)]
    assert len(caplog.records) == 1


async def test_closing_waits_for_running_handlers():
    handle = Diary(takes=60)
    await work_until(10, make_queue("a", "b"), handle)
    assert handle.seen == [("a", 0)]
    assert asyncio.get_running_loop().time() == 60


async def test_cancelling_stops_handlers_and_keeps_their_keys():
    queue, handle = make_queue("a", "b", "c"), Diary(takes=60)
    workers = asyncio.create_task(run_workers(queue, handle, 2))
    await asyncio.sleep(10)
    workers.cancel()
    await asyncio.wait({workers})
    assert workers.cancelled()
    assert handle.busy == 0
    assert sorted([await queue.get() for _ in range(len(queue))]) == ["a", "b", "c"]


async def test_cancelled_keys_have_not_failed(caplog):
    queue = make_queue("a")
    workers = asyncio.create_task(run_workers(queue, Diary(takes=60), 1))
    await asyncio.sleep(10)
    workers.cancel()
    await asyncio.wait({workers})
    assert queue.failures("a") == 0
    assert not caplog.records
