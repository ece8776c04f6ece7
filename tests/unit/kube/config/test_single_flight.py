"""One run for all callers that ask while it lasts."""

import asyncio

import pytest

from mpi_operator.kube.config.single_flight import SingleFlight


class Run:
    """A run that lasts until it is told to end."""

    def __init__(self) -> None:
        self.started = 0
        self.cancelled = 0
        self.end = asyncio.Event()

    async def __call__(self) -> int:
        self.started += 1
        try:
            await self.end.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return self.started


async def tasks_of(flight: SingleFlight[int], count: int) -> list[asyncio.Task[int]]:
    tasks = [asyncio.create_task(flight()) for _ in range(count)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


async def test_overlapping_calls_share_a_run_and_later_ones_do_not():
    run = Run()
    flight = SingleFlight(run)
    tasks = await tasks_of(flight, 3)
    run.end.set()
    assert await asyncio.gather(*tasks) == [1, 1, 1]
    assert await flight() == 2


async def test_who_is_cancelled_leaves_the_others_their_run():
    run = Run()
    first, second = await tasks_of(SingleFlight(run), 2)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    run.end.set()
    assert await second == 1
    assert run.cancelled == 0


async def test_the_last_to_leave_cancels_the_run():
    run = Run()
    flight = SingleFlight(run)
    tasks = await tasks_of(flight, 2)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (run.started, run.cancelled) == (1, 1)
    run.end.set()
    assert await flight() == 2


async def test_those_who_leave_the_last_run_are_not_counted_with_the_next_one():
    """A call may come between the end of a run and the moment when its waiters wake up."""
    run = Run()
    flight = SingleFlight(run)
    (old,) = await tasks_of(flight, 1)
    assert flight._flight is not None
    next_ones: list[asyncio.Task[int]] = []
    flight._flight.task.add_done_callback(
        lambda _: next_ones.extend(asyncio.create_task(flight()) for _ in range(2))
    )
    run.end.set()
    assert await old == 1
    run.end.clear()
    leaving, staying = next_ones
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.wait([leaving])
    run.end.set()
    assert await staying == 2
