"""The order of steps, with a real elector and a controller that keeps a diary."""

import asyncio
from contextlib import asynccontextmanager
from functools import partial
from typing import cast

import pytest

from mpi_operator.kube import errors
from mpi_operator.kube.client import Client
from mpi_operator.kube.leader_election.elector import Elector
from mpi_operator.kube.leader_election.lease import Timing
from mpi_operator.operator.exit_codes import Exit, ExitCode
from mpi_operator.operator.health import STOPPING, Health
from mpi_operator.operator.lifecycle import Parts, background, run_lifecycle, unless
from tests.support.lease_store import LeaseClient, LeaseStore
from tests.support.waiting import until

QUICK = Timing(lease_seconds=3, renew_seconds=2.0, retry_seconds=0.05)


class Controller:
    """Leads until it is stopped and `done` is set."""

    is_synced = True
    problems: tuple[str, ...] = ()

    def __init__(self, store):
        self.store = store
        self.diary: list[str] = []
        self.stopped, self.done = asyncio.Event(), asyncio.Event()
        self.done.set()

    async def follow(self):
        self.diary.append("follow")
        try:
            await asyncio.Event().wait()
        finally:
            self.diary.append(f"caches end, holder: {self.store.holder}")

    async def refresh(self):
        self.diary.append("refresh")

    async def lead(self):
        self.diary.append("lead")
        await self.stopped.wait()
        await self.done.wait()
        self.diary.append(f"work ends, holder: {self.store.holder}")

    def stop(self):
        self.diary.append("stop")
        self.stopped.set()


class Operator:
    """The parts of one operator."""

    def __init__(self, store=None):
        self.store = store or LeaseStore()
        self.controller = Controller(self.store)
        self.stop = asyncio.Event()

        @asynccontextmanager
        async def connect():
            yield cast("Client", LeaseClient(self.store))

        self.elector = Elector(connect, namespace="a", name="lock", identity="us", timing=QUICK)
        self.health = Health(self.controller, self.elector)
        self.preflight = self.note_preflight
        self.guard = asyncio.Event().wait
        self.drain_seconds = 10.0

    async def note_preflight(self):
        self.controller.diary.append("preflight")

    async def run(self):
        parts = Parts(
            self.controller,
            self.elector,
            self.health,
            self.preflight,
            asyncio.Event().wait,
            self.guard,
            self.drain_seconds,
        )
        await run_lifecycle(parts, self.stop)

    async def exit(self):
        async with asyncio.timeout(20):
            with pytest.raises(Exit) as raised:
                await self.run()
        return raised.value

    def steal(self):
        lease = self.store.get()
        lease["spec"]["holderIdentity"] = "thief"
        lease["metadata"]["resourceVersion"] = "1000"
        self.store.lease = lease


@pytest.fixture
def operator():
    return Operator()


async def exit_after(operator, when, do):
    """The Exit if `do` is called once `when` is in the diary of the controller."""
    async with asyncio.TaskGroup() as group:
        exit = group.create_task(operator.exit())
        await until(lambda: when in operator.controller.diary)
        do()
    return exit.result()


async def test_the_order_of_steps(operator):
    exit = await exit_after(operator, "lead", operator.stop.set)
    assert exit.code is ExitCode.STOPPED
    assert sorted(operator.controller.diary[:4]) == ["follow", "lead", "preflight", "refresh"]
    assert operator.controller.diary[3:] == [
        "lead",
        "stop",
        "work ends, holder: us",
        "caches end, holder: us",
    ]
    assert operator.store.holder == "", "released after the last write"
    assert operator.health.readiness_problems() == [STOPPING]


async def test_a_lost_lease_ends_it_at_once_and_is_not_released(operator):
    exit = await exit_after(operator, "lead", operator.steal)
    assert exit.code is ExitCode.LEASE_LOST
    assert exit.fields["reason"] == "the lease is held by thief"
    assert "stop" not in operator.controller.diary
    assert operator.store.holder == "thief"


async def test_the_guard_ends_it_and_the_lease_is_released(operator):
    is_time = asyncio.Event()

    async def guard():
        await is_time.wait()
        raise Exit(ExitCode.TRAINING_OPERATOR, "step aside")

    operator.guard = guard
    exit = await exit_after(operator, "lead", is_time.set)
    assert exit.code is ExitCode.TRAINING_OPERATOR
    assert operator.store.holder == ""


async def test_work_that_does_not_end_keeps_the_lease_but_not_the_process(operator):
    operator.controller.done.clear()
    operator.drain_seconds = 0.05
    exit = await exit_after(operator, "lead", operator.stop.set)
    assert exit.code is ExitCode.STOPPED
    assert operator.store.holder == "us", "the lease has to expire"


async def test_a_stand_by_stops_without_having_led():
    operator = Operator(LeaseStore(lease_of("them")))
    exit = await exit_after(operator, "follow", operator.stop.set)
    assert exit.code is ExitCode.STOPPED
    assert "lead" not in operator.controller.diary
    assert operator.store.holder == "them"


async def test_it_can_be_stopped_while_the_server_is_unavailable(operator):
    operator.preflight = asyncio.Event().wait
    operator.stop.set()
    assert (await operator.exit()).code is ExitCode.STOPPED
    assert operator.controller.diary == []


async def test_a_failed_preflight_ends_it(operator):
    async def refuse():
        raise Exit(ExitCode.FORBIDDEN, "no")

    operator.preflight = refuse
    assert (await operator.exit()).code is ExitCode.FORBIDDEN
    assert operator.store.lease is None


@pytest.mark.parametrize("part", ["follow", "refresh", "lead"])
async def test_a_part_that_fails_ends_it_and_releases_the_lease(operator, part, monkeypatch):
    async def fail():
        raise KeyError(part)

    monkeypatch.setattr(operator.controller, part, fail)
    async with asyncio.timeout(20):
        with pytest.raises(KeyError, match=part):
            await operator.run()
    assert operator.store.lease is None or operator.store.holder == ""


@pytest.mark.parametrize("part", ["follow", "lead"])
async def test_a_part_that_ends_unexpectedly_is_a_bug(operator, part, monkeypatch):
    monkeypatch.setattr(operator.controller, part, partial(asyncio.sleep, 0))
    async with asyncio.timeout(20):
        with pytest.raises(RuntimeError, match="unexpectedly"):
            await operator.run()


async def test_a_lease_thread_that_dies_is_a_loss(operator, monkeypatch):
    monkeypatch.setattr(operator.store, "create", None)
    async with asyncio.timeout(20):
        with pytest.raises((Exit, errors.NotLeader), match=r"Lost|not callable"):
            await operator.run()


async def test_a_failure_while_stopping_is_logged(caplog):
    async def fail():
        raise ValueError("too late")

    async with background(fail()):
        await asyncio.sleep(0)
    assert [record.error for record in caplog.records] == ["ValueError('too late')"]


async def test_a_step_gives_its_result_unless_an_end_comes_first():
    async with background(asyncio.Event().wait()) as never:
        assert await unless(asyncio.sleep(0, "result"), never) == "result"


async def test_an_end_cancels_the_step():
    was_cancelled = asyncio.Event()

    async def step():
        try:
            await asyncio.Event().wait()
        finally:
            was_cancelled.set()

    async def end():
        await asyncio.sleep(0)
        raise Exit(ExitCode.BUG, "over")

    async with background(end()) as over:
        with pytest.raises(Exit, match="over"):
            await unless(step(), over)
    assert was_cancelled.is_set()


def lease_of(holder):
    return {
        "metadata": {"namespace": "a", "name": "lock"},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 60},
    }
