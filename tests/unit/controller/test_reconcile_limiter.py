"""How many jobs are reconciled at a time; those with many writes do not count."""

import asyncio

import pytest

from mpi_operator.controller.reconcile_limiter import ReconcileLimiter

pytestmark = pytest.mark.looptime


class Jobs:
    """Jobs that hold a slot until the test lets them leave."""

    def __init__(self, slots):
        self.limiter = ReconcileLimiter(slots)
        self.present = []
        self.ends = {}

    async def come(self, name, writes=0):
        end = self.ends[name] = asyncio.Event()
        async with self.limiter.slot() as slot:
            self.present.append(name)
            slot.leave_if_many(writes)
            await end.wait()
            self.present.remove(name)

    async def leave(self, name):
        self.ends[name].set()
        await settled()


async def settled():
    for _ in range(5):
        await asyncio.sleep(0)


async def test_slots_are_given_in_order():
    jobs = Jobs(2)
    async with asyncio.TaskGroup() as group:
        for name in "abcd":
            group.create_task(jobs.come(name))
        await settled()
        assert jobs.present == ["a", "b"]
        await jobs.leave("b")
        assert jobs.present == ["a", "c"]
        for name in "acd":
            await jobs.leave(name)


@pytest.mark.parametrize(("writes", "present"), [(32, ["big"]), (33, ["big", "small"])])
async def test_a_job_with_many_writes_delays_no_other(writes, present):
    jobs = Jobs(1)
    async with asyncio.TaskGroup() as group:
        group.create_task(jobs.come("big", writes))
        group.create_task(jobs.come("small"))
        await settled()
        assert jobs.present == present
        await jobs.leave("small")
        await jobs.leave("big")
    assert jobs.present == []


async def test_a_slow_job_delays_no_other():
    jobs = Jobs(1)
    async with asyncio.TaskGroup() as group:
        for name in ("slow", "next"):
            group.create_task(jobs.come(name))
        await asyncio.sleep(1.9)
        assert jobs.present == ["slow"]
        await asyncio.sleep(0.2)
        assert jobs.present == ["slow", "next"]
        for name in ("slow", "next"):
            await jobs.leave(name)


async def test_a_slot_that_was_left_early_is_released_once():
    jobs = Jobs(1)
    async with jobs.limiter.slot() as slot:
        slot.leave_if_many(1000)
    async with asyncio.TaskGroup() as group:
        for name in "ab":
            group.create_task(jobs.come(name))
        await settled()
        assert jobs.present == ["a"]
        await jobs.leave("a")
        await jobs.leave("b")
