"""Candidates in virtual time; electors, which have threads, in real time."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, NoReturn, cast

import pytest
from prometheus_client import CollectorRegistry

from mpi_operator.kube import errors
from mpi_operator.kube.client import Client
from mpi_operator.kube.leader_election import lease
from mpi_operator.kube.leader_election.candidate import Candidate
from mpi_operator.kube.leader_election.elector import Elector, new_identity
from mpi_operator.kube.leader_election.fence import LeaseFence, steady_clock
from mpi_operator.kube.leader_election.lease import Claim, Observation, Timing
from mpi_operator.kube.metrics import Metrics
from mpi_operator.kube.resources import Key, Manifest
from tests.support.lease_store import Fault, LeaseClient, LeaseStore, Line

KEY = Key("mpi-operator", "lock")
AT = datetime(2026, 1, 1, tzinfo=UTC)
QUICK = Timing(lease_seconds=3, renew_seconds=2.0, retry_seconds=0.05)

in_virtual_time = pytest.mark.looptime


def clock() -> float:
    return asyncio.get_running_loop().time()


class Contender:
    """A candidate with everything that belongs to it."""

    def __init__(
        self, store: LeaseStore, identity: str = "us", clock: Callable[[], float] = clock
    ) -> None:
        self.line = Line()
        self.client = LeaseClient(store, self.line)
        self.fence = LeaseFence(clock)
        client = cast("Client", self.client)
        self.candidate = Candidate(client, KEY, identity, Timing(), self.fence, clock)

    @asynccontextmanager
    async def reigning(self) -> AsyncIterator["asyncio.Future[NoReturn]"]:
        await self.candidate.win()
        holding = asyncio.ensure_future(self.candidate.hold())
        try:
            yield holding
        finally:
            holding.cancel()
            await asyncio.wait({holding})


def held_lease(**spec: object) -> Manifest:
    made = lease.claimed(Claim.CREATE, Observation(0.0), KEY, "them", Timing(), AT)
    return made | {"spec": made["spec"] | spec}


def overwrite(store: LeaseStore, **spec: object) -> None:
    manifest = store.get()
    store.replace(manifest | {"spec": manifest["spec"] | spec})


# The fence


class Watch:
    """A clock that a test can turn."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_fence_that_was_not_opened_allows_nothing():
    with pytest.raises(errors.NotLeader, match="does not hold the lease yet"):
        LeaseFence(Watch()).remaining()


def test_a_fence_says_how_much_time_is_left():
    watch = Watch()
    fence = LeaseFence(watch)
    fence.extend(105.0)
    watch.now = 103.0
    assert fence.remaining() == 2.0


def test_a_fence_closes_at_its_very_end():
    watch = Watch()
    fence = LeaseFence(watch)
    fence.extend(105.0)
    watch.now = 105.0
    with pytest.raises(errors.NotLeader, match="not renewed in time"):
        fence.remaining()


def test_a_fence_that_closed_stays_closed():
    watch = Watch()
    fence = LeaseFence(watch)
    fence.extend(105.0)
    watch.now = 105.0
    assert not fence.is_open
    watch.now = 104.0
    with pytest.raises(errors.NotLeader):
        fence.extend(200.0)
    with pytest.raises(errors.NotLeader):
        fence.remaining()


def test_an_answer_that_came_too_late_extends_nothing():
    fence = LeaseFence(Watch())
    assert not fence.extend(99.0)
    assert not fence.was_opened


def test_a_closed_fence_keeps_its_first_reason():
    fence = LeaseFence(Watch())
    fence.extend(105.0)
    fence.close("first")
    fence.close("second")
    with pytest.raises(errors.NotLeader, match="first"):
        fence.remaining()


def test_a_fence_that_was_closed_first_cannot_open():
    fence = LeaseFence(Watch())
    fence.close("stopped")
    with pytest.raises(errors.NotLeader, match="stopped"):
        fence.extend(105.0)


def test_the_clock_does_not_go_back_and_no_identity_comes_twice():
    assert steady_clock() <= steady_clock()
    assert new_identity() != new_identity()


# Candidates


@in_virtual_time
async def test_a_missing_lease_is_created():
    store = LeaseStore()
    us = Contender(store)
    await us.candidate.win()
    assert store.holder == "us"
    assert us.fence.remaining() == 5.0


@in_virtual_time
async def test_of_two_that_create_at_once_one_wins():
    store = LeaseStore()
    contenders = [Contender(store, "a"), Contender(store, "b")]
    wins = [asyncio.ensure_future(each.candidate.win()) for each in contenders]
    await asyncio.wait(wins, return_when=asyncio.FIRST_COMPLETED)
    assert [each.fence.is_open for each in contenders].count(True) == 1
    for win in wins:
        win.cancel()


@in_virtual_time
async def test_time_is_counted_from_before_the_request_was_sent():
    us = Contender(LeaseStore())
    us.line.latency = lambda: 1.0
    await us.candidate.win()  # a look and a write, one second each way
    assert us.fence.remaining() == pytest.approx(3.0)


@in_virtual_time
async def test_a_released_lease_is_taken_at_once():
    store = LeaseStore(held_lease())
    us = Contender(store)
    win = asyncio.ensure_future(us.candidate.win())
    await asyncio.sleep(7.0)
    overwrite(store, holderIdentity="")
    await win
    assert clock() == pytest.approx(7.0, abs=0.01)


@in_virtual_time
async def test_an_abandoned_lease_is_taken_when_it_has_run_out():
    us = Contender(LeaseStore(held_lease(leaseTransitions=4)))
    await us.candidate.win()
    assert clock() == pytest.approx(15.0, abs=0.01)
    assert us.client.store.get()["spec"]["leaseTransitions"] == 5


@in_virtual_time
async def test_a_clock_a_hair_slower_than_the_loop_does_not_make_us_turn_in_circles():
    us = Contender(LeaseStore(held_lease()), clock=lambda: clock() - 4e-10 * (clock() > 14))
    await us.candidate.win()
    assert us.client.watches < 10


@in_virtual_time
async def test_each_renewal_of_the_holder_makes_us_wait_anew_on_the_same_watch():
    store = LeaseStore(held_lease())
    us = Contender(store)
    win = asyncio.ensure_future(us.candidate.win())
    for second in range(20):
        await asyncio.sleep(3.0)
        overwrite(store, renewTime=f"t{second}")
    await win
    assert clock() == pytest.approx(75.0, abs=0.01)
    assert us.client.watches == 1


@in_virtual_time
async def test_a_silent_watch_does_not_make_us_take_what_is_alive():
    store = LeaseStore(held_lease())
    us = Contender(store)
    win = asyncio.ensure_future(us.candidate.win())
    await asyncio.sleep(1.0)
    us.line.break_down(Fault.LOSE_ANSWERS)
    overwrite(store, renewTime="later")
    await asyncio.sleep(13.0)
    us.line.repair()
    await win
    assert clock() == pytest.approx(30.0, abs=0.01), "15 s in vain, a look, 15 s more"


@in_virtual_time
async def test_without_a_watch_the_lease_is_polled(monkeypatch):
    store = LeaseStore(held_lease())
    us = Contender(store)

    async def forbidden(*_, **__):
        raise errors.Forbidden(errors.Status("no watching here"))
        yield

    monkeypatch.setattr(us.client, "watch", forbidden)
    win = asyncio.ensure_future(us.candidate.win())
    await asyncio.sleep(1.0)
    overwrite(store, holderIdentity="")
    await win
    assert clock() < 4.0


@in_virtual_time
async def test_a_lease_deleted_under_its_holder_is_not_ours_yet():
    store = LeaseStore(held_lease())
    us = Contender(store)
    win = asyncio.ensure_future(us.candidate.win())
    await asyncio.sleep(1.0)
    store.delete()
    await win
    assert clock() == pytest.approx(15.0, abs=0.01)


@in_virtual_time
async def test_a_lease_deleted_under_us_is_put_back():
    store = LeaseStore()
    us = Contender(store)
    async with us.reigning():
        store.delete()
        await asyncio.sleep(60.0)
        assert us.fence.is_open
        assert store.holder == "us"


@in_virtual_time
async def test_a_holder_keeps_the_lease_for_as_long_as_it_can_renew():
    us = Contender(LeaseStore())
    async with us.reigning():
        await asyncio.sleep(3600.0)
        assert us.fence.is_open


@in_virtual_time
async def test_a_write_by_a_third_party_costs_nothing():
    store = LeaseStore()
    us = Contender(store)
    async with us.reigning():
        store.replace(store.get() | {"metadata": store.get()["metadata"] | {"labels": {}}})
        await asyncio.sleep(60.0)
        assert us.fence.is_open


@in_virtual_time
async def test_a_leader_that_sees_another_holder_has_lost():
    store = LeaseStore()
    us = Contender(store)
    async with us.reigning() as holding:
        overwrite(store, holderIdentity="them")
        with pytest.raises(errors.NotLeader, match="held by them"):
            await holding
    assert clock() < 2.0


@pytest.mark.parametrize("fault", Fault)
@in_virtual_time
async def test_a_leader_that_cannot_renew_has_lost_at_the_deadline(fault):
    us = Contender(LeaseStore())
    async with us.reigning() as holding:
        us.line.break_down(fault)
        with pytest.raises(errors.NotLeader, match="not renewed in time"):
            await holding
    assert clock() == pytest.approx(5.0, abs=0.01)


@pytest.mark.parametrize("fault", Fault)
@in_virtual_time
async def test_a_short_fault_costs_nothing(fault):
    us = Contender(LeaseStore())
    async with us.reigning():
        await asyncio.sleep(1.5)
        us.line.break_down(fault)
        await asyncio.sleep(1.0)
        us.line.repair()
        await asyncio.sleep(60.0)
        assert us.fence.is_open


@in_virtual_time
async def test_a_win_that_we_did_not_hear_of_is_found_out():
    store = LeaseStore()
    us = Contender(store)
    us.line.break_down(Fault.LOSE_ANSWERS)
    win = asyncio.ensure_future(us.candidate.win())
    await asyncio.sleep(1.0)
    us.line.repair()
    await win
    assert store.holder == "us"
    assert us.fence.remaining() == 5.0


@in_virtual_time
async def test_releasing_clears_the_name_and_closes_the_fence():
    store = LeaseStore()
    us = Contender(store)
    async with us.reigning():
        pass
    await us.candidate.release()
    assert store.holder == ""
    assert store.get()["spec"]["leaseDurationSeconds"] == 1
    with pytest.raises(errors.NotLeader, match="released"):
        us.fence.remaining()


@in_virtual_time
async def test_what_is_not_ours_is_not_released():
    store = LeaseStore()
    us = Contender(store)
    async with us.reigning():
        overwrite(store, holderIdentity="them")
    await us.candidate.release()
    assert store.holder == "them"


@in_virtual_time
async def test_after_a_loss_the_lease_must_run_out():
    """What we sent before may still be on its way."""
    store = LeaseStore()
    us = Contender(store)
    async with us.reigning() as holding:
        us.line.break_down(Fault.REFUSE)
        await asyncio.wait({holding})
    us.line.repair()
    await us.candidate.release()
    assert store.holder == "us"


@in_virtual_time
@pytest.mark.parametrize(
    ("seconds", "holder"),
    [
        pytest.param(3, "us", id="it may still land"),
        pytest.param(11, "", id="it has landed by now, or never will"),
    ],
)
async def test_after_an_abandoned_write_the_lease_is_not_released_too_early(seconds, holder):
    store = LeaseStore()
    us = Contender(store)
    async with us.reigning():
        us.fence.doubt(10)
        await asyncio.sleep(seconds)
        await us.candidate.release()
    assert store.holder == holder


@in_virtual_time
async def test_a_candidate_that_claimed_nothing_releases_nothing():
    us = Contender(LeaseStore(held_lease()))
    us.line.break_down(Fault.LOSE_ANSWERS)
    await us.candidate.release()
    assert clock() == 0.0


@in_virtual_time
async def test_a_release_that_fails_is_logged_and_takes_a_bounded_time(caplog):
    us = Contender(LeaseStore())
    async with us.reigning():
        pass
    us.line.break_down(Fault.LOSE_ANSWERS)
    await us.candidate.release()
    assert clock() == pytest.approx(5.0)
    assert "Could not release the Lease, it will expire" in caplog.messages


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        pytest.param(errors.Forbidden, "allow get, create, update and watch", id="may not"),
        pytest.param(errors.NotFound, "create the namespace", id="the namespace is missing"),
    ],
)
@in_virtual_time
async def test_what_stands_in_the_way_is_said_once_with_what_helps(
    error, advice, caplog, monkeypatch
):
    us = Contender(LeaseStore())

    async def refuse(*_):
        raise error(errors.Status("no"))

    monkeypatch.setattr(us.client, "create", refuse)
    win = asyncio.ensure_future(us.candidate.win())
    await asyncio.sleep(60.0)
    assert not win.done()
    win.cancel()
    warnings = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert [each.advice.startswith(advice) for each in warnings] == [True]


# Electors


def elector_on(store: LeaseStore, line: Line | None = None, **options: Any) -> Elector:
    @asynccontextmanager
    async def connect() -> AsyncIterator[Client]:
        yield cast("Client", LeaseClient(store, line))

    defaults: dict[str, Any] = {"namespace": "mpi-operator", "name": "lock", "identity": "us"}
    return Elector(connect, **defaults | {"timing": QUICK} | options)


async def test_an_elector_leads_and_releases():
    store = LeaseStore()
    async with elector_on(store) as elector:
        await elector.acquired()
        elector.check()
        assert 0 < elector.remaining() <= 2.0
        assert elector.is_leader
        assert elector.why_lost == ""
    assert store.holder == ""
    assert elector.why_lost == "the lease was released"
    with pytest.raises(errors.NotLeader):
        elector.check()


async def test_an_elector_connects_and_renews_in_a_thread_of_its_own():
    connected_in: list[threading.Thread] = []

    @asynccontextmanager
    async def connect():
        connected_in.append(threading.current_thread())
        yield LeaseClient(LeaseStore())

    async with Elector(connect, namespace="mpi-operator", name="lock") as elector:
        await elector.acquired()
    assert connected_in != [threading.current_thread()]
    assert not connected_in[0].is_alive()


async def test_a_stalled_main_loop_does_not_cost_the_lease():
    async with elector_on(LeaseStore()) as elector:
        await elector.acquired()
        threading.Event().wait(1.5 * QUICK.renew_seconds)
        elector.check()  # raises NotLeader if the lease was lost
        assert elector.why_lost == ""


async def test_losing_wakes_waiters_and_says_why():
    store = LeaseStore()
    async with elector_on(store) as elector:
        await elector.acquired()
        lost = asyncio.ensure_future(elector.lost())
        overwrite(store, holderIdentity="them")
        assert await asyncio.wait_for(lost, 10) == "the lease is held by them"
        with pytest.raises(errors.NotLeader, match="held by them"):
            await elector.acquired()
    assert store.holder == "them"


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(RuntimeError("boom"), id="an unexpected error"),
        pytest.param(SystemExit("boom"), id="an attempt to exit"),
    ],
)
async def test_a_thread_that_fails_counts_as_a_loss(error):
    def connect():
        raise error

    async with Elector(connect, namespace="mpi-operator", name="lock") as elector:
        assert "boom" in await asyncio.wait_for(elector.lost(), 10)
        with pytest.raises(errors.NotLeader, match="boom"):
            await asyncio.wait_for(elector.acquired(), 10)


async def test_a_thread_that_fails_while_leading_counts_as_a_loss(monkeypatch):
    store = LeaseStore()
    async with elector_on(store) as elector:
        await elector.acquired()
        monkeypatch.setattr(store, "replace", None)
        assert "not callable" in await asyncio.wait_for(elector.lost(), 10)


async def test_an_abandoned_lease_is_not_released():
    store = LeaseStore()
    async with elector_on(store) as elector:
        await elector.acquired()
        elector.abandon("a worker does not stop")
        with pytest.raises(errors.NotLeader, match="does not stop"):
            elector.check()
        assert await asyncio.wait_for(elector.lost(), 10) == "a worker does not stop"
    assert store.holder == "us"


async def test_an_elector_that_stands_by_ends_at_once():
    store = LeaseStore(held_lease())
    async with elector_on(store) as elector:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(elector.acquired(), 0.1)
    assert store.holder == "them"
    assert elector.why_lost == "the elector was stopped"


async def test_an_elector_can_be_left_before_it_has_begun():
    store = LeaseStore()
    async with elector_on(store):
        pass
    assert store.holder == ""


async def test_a_server_that_does_not_answer_delays_the_end_only_so_long(caplog):
    line = Line()
    async with elector_on(LeaseStore(), line, timing=Timing(6, 3, 0.1)) as elector:
        await elector.acquired()
        line.fault = Fault.LOSE_ANSWERS
    # The release has a limit of its own: 3s. For the thread, leaving waits 6s.
    assert "Lease thread did not stop" not in caplog.messages


async def test_leaving_keeps_the_main_loop_going():
    async def tick() -> None:
        while True:
            ticks.append(steady_clock())
            await asyncio.sleep(0.01)

    line, ticks = Line(), list[float]()
    async with elector_on(LeaseStore(), line, timing=Timing(4, 3, 0.1)) as elector:
        await elector.acquired()
        line.fault = Fault.LOSE_ANSWERS
        ticking = asyncio.ensure_future(tick())
    ticking.cancel()
    assert len(ticks) > 10


async def test_the_metric_shows_who_leads():
    registry = CollectorRegistry()

    def leads() -> float | None:
        return registry.get_sample_value("leader_election_master_status", {"name": "lock"})

    async with elector_on(LeaseStore(), metrics=Metrics(registry)) as elector:
        await elector.acquired()
        assert leads() == 1
    assert leads() == 0
