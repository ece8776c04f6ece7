import asyncio
import gc
import weakref

import pytest
from prometheus_client import CollectorRegistry

from mpi_operator.kube.metrics import Metrics
from mpi_operator.kube.workqueue import QueueClosed, WorkQueue

pytestmark = pytest.mark.looptime


def make_queue(**settings):
    return WorkQueue[str]("test", **({"random": lambda: 0.0} | settings))


def loop_time():
    return asyncio.get_running_loop().time()


async def handle_all(queue):
    """The keys that wait, in the order they are served."""
    keys = []
    while len(queue):
        keys.append(await queue.get())
        queue.done(keys[-1])
    return keys


async def test_first_come_first_served():
    queue = make_queue()
    for key in "bca":
        queue.add(key)
    assert await handle_all(queue) == ["b", "c", "a"]


async def test_a_key_that_waits_waits_once():
    queue = make_queue()
    for key in "abab":
        queue.add(key)
    assert len(queue) == 2
    assert await handle_all(queue) == ["a", "b"]


async def test_a_key_added_while_worked_on_comes_back_only_when_done():
    queue = make_queue()
    queue.add("a")
    key = await queue.get()
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0
    queue.done(key)
    assert await handle_all(queue) == ["a"]


async def test_a_key_that_was_not_added_again_is_gone_when_done():
    queue = make_queue()
    queue.add("a")
    queue.done(await queue.get())
    assert len(queue) == 0


async def test_a_hot_key_goes_to_the_end_of_the_line():
    queue = make_queue()
    for key in ("hot", "a", "b"):
        queue.add(key)
    key = await queue.get()
    queue.add("hot")
    queue.done(key)
    assert await handle_all(queue) == ["a", "b", "hot"]


async def test_a_getter_waits_for_a_key():
    queue = make_queue()
    asyncio.get_running_loop().call_later(600, queue.add, "a")
    assert await queue.get() == "a"
    assert loop_time() == 600


async def test_a_delayed_key_comes_when_its_time_does():
    queue = make_queue()
    queue.add_after("b", 20)
    queue.add_after("a", 10)
    assert [(await queue.get(), loop_time()) for _ in "ab"] == [("a", 10), ("b", 20)]


async def test_no_delay_is_no_delay():
    queue = make_queue()
    queue.add_after("a", 0)
    assert await handle_all(queue) == ["a"]


@pytest.mark.parametrize(
    "delays",
    [
        pytest.param((60, 10), id="the earlier one asked for last"),
        pytest.param((10, 60), id="the earlier one asked for first"),
    ],
)
async def test_of_several_delays_the_earliest_counts_and_only_that(delays):
    queue = make_queue()
    for seconds in delays:
        queue.add_after("a", seconds)
    assert (await queue.get(), loop_time()) == ("a", 10)
    queue.done("a")
    await asyncio.sleep(600)
    assert len(queue) == 0


async def test_a_delayed_key_joins_the_end_of_the_line():
    queue = make_queue()
    queue.add_after("delayed", 1)
    queue.add("a")
    queue.add("b")
    await asyncio.sleep(2)
    assert await handle_all(queue) == ["a", "b", "delayed"]


async def test_adding_at_once_keeps_the_later_requeue():
    queue = make_queue()
    queue.add_after("a", 60)
    queue.add("a")
    assert await handle_all(queue) == ["a"]
    assert (await queue.get(), loop_time()) == ("a", 60)


async def test_a_delay_that_ends_while_the_key_is_worked_on_brings_it_back_afterwards():
    queue = make_queue()
    queue.add("a")
    key = await queue.get()
    queue.add_after("a", 5)
    await asyncio.sleep(10)
    assert len(queue) == 0
    queue.done(key)
    assert len(queue) == 1


async def retry_times(queue, key, count):
    times = []
    for _ in range(count):
        queue.retry(key)
        queue.done(await queue.get())
        times.append(loop_time())
    return times


async def test_failures_double_the_delay_up_to_the_cap():
    queue = make_queue(base_delay=1, max_delay=5)
    assert await retry_times(queue, "a", 5) == [1, 3, 7, 12, 17]
    assert queue.failures("a") == 5


async def test_success_starts_the_back_off_anew():
    queue = make_queue(base_delay=1, max_delay=100)
    await retry_times(queue, "a", 5)
    queue.forget("a")
    assert queue.failures("a") == 0
    before = loop_time()
    assert await retry_times(queue, "a", 1) == [before + 1]


async def test_keys_that_failed_together_do_not_come_back_together():
    queue = WorkQueue[int]("test", base_delay=64, max_delay=64)
    for key in range(1000):
        queue.retry(key)
    times = set()
    for _ in range(1000):
        queue.done(await queue.get())
        times.add(round(loop_time()))
    assert min(times) >= 32
    assert max(times) <= 64
    assert len(times) > 25


async def test_a_thousand_delayed_keys_need_one_timer():
    loop = asyncio.get_running_loop()
    before = len(asyncio.all_tasks()), len(loop._scheduled)  # type: ignore[attr-defined]
    queue = WorkQueue[int]("test")
    for key in range(1000):
        queue.add_after(key, 1 + key)
    after = len(asyncio.all_tasks()), len(loop._scheduled)  # type: ignore[attr-defined]
    assert after == (before[0], before[1] + 1)


async def test_a_cancelled_getter_leaves_the_key_to_the_next():
    queue = make_queue()
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()  # after the key woke it, before it could take it
    assert await second == "a"
    assert first.cancelled()


async def test_a_getter_cancelled_alone_leaves_the_key_in_the_queue():
    queue = make_queue()
    getter = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    getter.cancel()
    await asyncio.wait({getter})
    assert await queue.get() == "a"


async def test_cancelled_getters_are_not_woken_any_more():
    queue = make_queue()
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait({first})
    queue.add("a")
    assert await second == "a"


async def test_closing_ends_every_getter():
    queue = make_queue()
    getters = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.close()
    results = await asyncio.gather(*getters, return_exceptions=True)
    assert [type(result) for result in results] == [QueueClosed] * 3


async def test_a_closed_queue_gives_and_takes_nothing():
    queue = make_queue()
    queue.add("a")
    worked_on = await queue.get()
    queue.add("b")
    queue.add_after("c", 1)
    queue.add(worked_on)
    queue.close()
    for put in (queue.add, queue.retry, lambda key: queue.add_after(key, 1)):
        put("d")
    queue.done(worked_on)
    await asyncio.sleep(600)
    assert len(queue) == queue.failures("d") == 0
    with pytest.raises(QueueClosed):
        await queue.get()


async def test_giving_back_what_was_not_taken_is_a_mistake():
    with pytest.raises(KeyError):
        make_queue().done("a")


class Name:
    """A key that can be asked whether anybody still holds it."""


async def test_nothing_remains_of_many_keys():
    many = 20_000
    queue = WorkQueue[Name]("test", base_delay=1, max_delay=10, random=lambda: 0.0)
    alive = weakref.WeakSet[Name]()
    for _ in range(many):
        key = Name()
        alive.add(key)
        queue.add(key)
        queue.retry(key)
        queue.add_after(key, 5)
    for _ in range(2 * many):  # each at once, and each once more after its shortest delay
        key = await queue.get()
        queue.forget(key)
        queue.done(key)
    del key
    gc.collect()
    assert len(alive) == 0


async def test_what_is_counted():
    registry = CollectorRegistry()
    queue = make_queue(metrics=Metrics(registry), base_delay=2, max_delay=2)
    for key in "aab":
        queue.add(key)
    await asyncio.sleep(3)
    key = await queue.get()
    await asyncio.sleep(5)
    queue.retry(key)
    queue.done(key)
    seen = {
        name: registry.get_sample_value(f"workqueue_{name}", {"name": "test"})
        for name in (
            "depth",
            "adds_total",
            "retries_total",
            "queue_duration_seconds_sum",
            "work_duration_seconds_sum",
        )
    }
    assert list(seen.values()) == [1, 2, 1, 3, 5]
