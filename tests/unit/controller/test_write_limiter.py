"""In which order writes are let through when there are more than slots."""

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpi_operator.controller.write_limiter import WriteLimiter

pytestmark = pytest.mark.looptime


async def write(slots, key, diary, takes=1.0):
    async with slots.slot(key):
        diary.append(key)
        await asyncio.sleep(takes)


async def wrote(slots, *keys):
    """The order in which writers got a slot, given the order in which they asked."""
    diary: list[str] = []
    await asyncio.gather(*(write(slots, key, diary) for key in keys))
    return "".join(diary)


@pytest.mark.parametrize(
    ("slots", "asked", "order"),
    [
        (1, "aaa", "aaa"),
        # The first finds a free slot; only those that wait take turns.
        (1, "aaab", "aaba"),
        (1, "aaabbb", "aababb"),
        (1, "aaaabcbc", "aabcabca"),
        (2, "aaaab", "aaaba"),
        (9, "aabb", "aabb"),
    ],
)
async def test_jobs_take_turns(slots, asked, order):
    assert await wrote(WriteLimiter(slots), *asked) == order


async def test_no_more_writers_than_slots():
    slots, loop = WriteLimiter(3), asyncio.get_running_loop()
    began = loop.time()
    await wrote(slots, *"abcdefghi")
    assert loop.time() - began == pytest.approx(3)


async def test_a_small_job_does_not_wait_for_a_big_one():
    slots, loop = WriteLimiter(48), asyncio.get_running_loop()
    big = [asyncio.create_task(write(slots, "big", [])) for _ in range(1000)]
    await asyncio.sleep(0.5)
    began = loop.time()
    await asyncio.gather(*(write(slots, "small", []) for _ in range(4)))
    assert loop.time() - began <= 2
    await asyncio.gather(*big)


async def test_a_failed_write_releases_its_slot():
    slots = WriteLimiter(1)
    with pytest.raises(ValueError):
        async with slots.slot("a"):
            raise ValueError
    assert await wrote(slots, "b") == "b"


async def test_a_cancelled_writer_is_skipped():
    slots, diary = WriteLimiter(1), list[str]()
    tasks = [asyncio.create_task(write(slots, key, diary)) for key in "abc"]
    await asyncio.sleep(0.5)
    tasks[1].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert diary == ["a", "c"]


async def test_a_writer_cancelled_at_its_turn_passes_it_on():
    slots, diary = WriteLimiter(1), list[str]()
    async with slots.slot("a"):
        second, third = (asyncio.create_task(write(slots, key, diary)) for key in "bc")
        await asyncio.sleep(0)
    second.cancel()  # it has been given its turn, and has not run since
    await asyncio.gather(second, third, return_exceptions=True)
    assert diary == ["c"]


@settings(max_examples=150)
@given(
    st.integers(1, 3),
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.integers(0, 6),  # when it asks
            st.integers(0, 3),  # how long it writes
            st.one_of(st.none(), st.integers(0, 8)),  # when it is cancelled
        ),
        max_size=12,
    ),
)
def test_no_slot_is_ever_lost(slots, writers):
    asyncio.run(_no_slot_is_lost(slots, writers))


async def _no_slot_is_lost(count, writers):
    """Time is counted in loop iterations, so that every moment between two of them is tried."""
    slots = WriteLimiter(count)

    async def turns(number):
        for _ in range(number):
            await asyncio.sleep(0)

    async def a_writer(key, asks, takes):
        await turns(asks)
        async with slots.slot(key):
            await turns(takes)

    async def cancel(task, when):
        await turns(when)
        task.cancel()

    tasks = [asyncio.create_task(a_writer(key, asks, takes)) for key, asks, takes, _ in writers]
    ends = [when for *_, when in writers]
    cancels = [cancel(task, end) for task, end in zip(tasks, ends, strict=True) if end is not None]
    await asyncio.gather(*tasks, *cancels, return_exceptions=True)
    free = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(1):
            for _ in range(count):
                await slots.slot("last").__aenter__()
                free += 1
    assert free == count
