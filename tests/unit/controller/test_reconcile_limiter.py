"""How many jobs are worked on at a time, and that those with much to write do not count."""

import asyncio

import pytest

from mpi_operator.controller.reconcile_limiter import ReconcileLimiter

pytestmark = pytest.mark.looptime


class Office:
    """Jobs that come and hold a place until they are told to end."""

    def __init__(self, places):
        self.attention = ReconcileLimiter(places)
        self.present = []
        self.ends = {}

    async def come(self, name, writes=0):
        end = self.ends[name] = asyncio.Event()
        async with self.attention.slot() as slot:
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


async def test_who_came_first_is_served_first_and_others_wait():
    office = Office(2)
    async with asyncio.TaskGroup() as group:
        for name in "abcd":
            group.create_task(office.come(name))
        await settled()
        assert office.present == ["a", "b"]
        await office.leave("b")
        assert office.present == ["a", "c"]
        for name in "acd":
            await office.leave(name)


@pytest.mark.parametrize(("writes", "present"), [(32, ["big"]), (33, ["big", "small"])])
async def test_much_to_write_holds_up_nobody(writes, present):
    office = Office(1)
    async with asyncio.TaskGroup() as group:
        group.create_task(office.come("big", writes))
        group.create_task(office.come("small"))
        await settled()
        assert office.present == present
        await office.leave("small")
        await office.leave("big")
    assert office.present == []


async def test_what_takes_long_holds_up_nobody():
    office = Office(1)
    async with asyncio.TaskGroup() as group:
        for name in ("slow", "next"):
            group.create_task(office.come(name))
        await asyncio.sleep(1.9)
        assert office.present == ["slow"]
        await asyncio.sleep(0.2)
        assert office.present == ["slow", "next"]
        for name in ("slow", "next"):
            await office.leave(name)


async def test_who_left_early_gives_back_one_place_only():
    office = Office(1)
    async with office.attention.slot() as slot:
        slot.leave_if_many(1000)
    async with asyncio.TaskGroup() as group:
        for name in "ab":
            group.create_task(office.come(name))
        await settled()
        assert office.present == ["a"]
        await office.leave("a")
        await office.leave("b")
