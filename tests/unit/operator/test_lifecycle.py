"""From the first question to the last write: a real elector, a controller with a diary."""

import asyncio
from contextlib import asynccontextmanager
from functools import partial
from typing import cast

import pytest

from mpi_operator.kube import errors
from mpi_operator.kube.client import Client
from mpi_operator.kube.leader_election.elector import Elector
from mpi_operator.kube.leader_election.lease import Timing
from mpi_operator.operator.exit_codes import Ending, ExitCode
from mpi_operator.operator.health import Health
from mpi_operator.operator.lifecycle import Parts, live, running, unless
from tests.support.lease_store import LeaseClient, LeaseStore
from tests.support.waiting import until

QUICK = Timing(lease_seconds=3, renew_seconds=2.0, retry_seconds=0.05)


class Controller:
    """Works until it is told to stop, and then until it is done."""

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
    """Everything that belongs to one life."""

    def __init__(self, store=None):
        self.store = store or LeaseStore()
        self.controller = Controller(self.store)
        self.asked = asyncio.Event()

        @asynccontextmanager
        async def connect():
            yield cast("Client", LeaseClient(self.store))

        self.elector = Elector(connect, namespace="a", name="lock", identity="us", timing=QUICK)
        self.health = Health(self.controller, self.elector)
        self.preflight = self.note_preflight
        self.drain_seconds = 10.0

    async def note_preflight(self):
        self.controller.diary.append("preflight")

    async def live(self):
        parts = Parts(
            self.controller,
            self.elector,
            self.health,
            self.preflight,
            asyncio.Event().wait,
            self.drain_seconds,
        )
        await live(parts, self.asked)

    async def ending(self):
        async with asyncio.timeout(20):
            with pytest.raises(Ending) as ending:
                await self.live()
        return ending.value

    def steal(self):
        lease = self.store.get()
        lease["spec"]["holderIdentity"] = "thief"
        lease["metadata"]["resourceVersion"] = "1000"
        self.store.lease = lease


@pytest.fixture
def operator():
    return Operator()


async def ended(operator, when, do):
    """How it ends if `do` is done when the controller has written that into its diary."""
    async with asyncio.TaskGroup() as group:
        ending = group.create_task(operator.ending())
        await until(lambda: when in operator.controller.diary)
        do()
    return ending.result()


async def test_a_good_life(operator):
    ending = await ended(operator, "lead", operator.asked.set)
    assert ending.code is ExitCode.ASKED_TO_STOP
    assert sorted(operator.controller.diary[:4]) == ["follow", "lead", "preflight", "refresh"]
    assert operator.controller.diary[3:] == [
        "lead",
        "stop",
        "work ends, holder: us",
        "caches end, holder: us",
    ]
    assert operator.store.holder == "", "released after the last write"
    assert operator.health.obstacles() == ["the operator is stopping"]


async def test_a_lost_lease_ends_it_at_once_and_nothing_is_released(operator):
    ending = await ended(operator, "lead", operator.steal)
    assert ending.code is ExitCode.LEASE_LOST
    assert ending.facts["reason"] == "the lease is held by thief"
    assert "stop" not in operator.controller.diary
    assert operator.store.holder == "thief"


async def test_work_that_does_not_end_costs_the_release_and_not_the_stop(operator):
    operator.controller.done.clear()
    operator.drain_seconds = 0.05
    ending = await ended(operator, "lead", operator.asked.set)
    assert ending.code is ExitCode.ASKED_TO_STOP
    assert operator.store.holder == "us", "the lease has to run out"


async def test_a_stand_by_stops_without_having_led():
    operator = Operator(LeaseStore(lease_of("them")))
    ending = await ended(operator, "follow", operator.asked.set)
    assert ending.code is ExitCode.ASKED_TO_STOP
    assert "lead" not in operator.controller.diary
    assert operator.store.holder == "them"


async def test_it_can_be_stopped_while_the_server_is_away(operator):
    operator.preflight = asyncio.Event().wait
    operator.asked.set()
    assert (await operator.ending()).code is ExitCode.ASKED_TO_STOP
    assert operator.controller.diary == []


async def test_who_may_not_does_not_begin(operator):
    async def refuse():
        raise Ending(ExitCode.NOT_ALLOWED, "no")

    operator.preflight = refuse
    assert (await operator.ending()).code is ExitCode.NOT_ALLOWED
    assert operator.store.lease is None


@pytest.mark.parametrize("part", ["follow", "refresh", "lead"])
async def test_a_part_that_fails_ends_the_life_and_frees_the_lease(operator, part, monkeypatch):
    async def fail():
        raise KeyError(part)

    monkeypatch.setattr(operator.controller, part, fail)
    async with asyncio.timeout(20):
        with pytest.raises(KeyError, match=part):
            await operator.live()
    assert operator.store.lease is None or operator.store.holder == ""


@pytest.mark.parametrize("part", ["follow", "lead"])
async def test_a_part_that_ends_unasked_is_a_mistake(operator, part, monkeypatch):
    monkeypatch.setattr(operator.controller, part, partial(asyncio.sleep, 0))
    async with asyncio.timeout(20):
        with pytest.raises(RuntimeError, match="nobody had asked"):
            await operator.live()


async def test_a_lease_thread_that_dies_is_a_loss(operator, monkeypatch):
    monkeypatch.setattr(operator.store, "create", None)
    async with asyncio.timeout(20):
        with pytest.raises((Ending, errors.NotLeader), match=r"lost|not callable"):
            await operator.live()


async def test_a_failure_on_the_way_out_is_told(caplog):
    async def fail():
        raise ValueError("too late")

    async with running(fail()):
        await asyncio.sleep(0)
    assert [record.error for record in caplog.records] == ["ValueError('too late')"]


async def test_a_step_gives_its_result_unless_an_end_comes_first():
    async with running(asyncio.Event().wait()) as never:
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
        raise Ending(ExitCode.BUG, "over")

    async with running(end()) as over:
        with pytest.raises(Ending, match="over"):
            await unless(step(), over)
    assert was_cancelled.is_set()


def lease_of(holder):
    return {
        "metadata": {"namespace": "a", "name": "lock"},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 60},
    }
