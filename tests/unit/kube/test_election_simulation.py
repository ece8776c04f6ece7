"""Hours of elections in virtual time, with every fault at every moment.

Up to three processes compete; each writes while its fence allows it. Their lines break, their
clocks differ in reading and in speed, they crash and they are shut down, and what they sent may
arrive long after they are gone. Two things must hold, always: only one may write at a time (and
no write arrives after one of the next leader's), and once the faults are over, one of them leads.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import combinations, groupby
from typing import Any, cast

import looptime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpi_operator.kube import errors
from mpi_operator.kube.client import Client
from mpi_operator.kube.leader_election.candidate import Candidate
from mpi_operator.kube.leader_election.fence import LeaseFence
from mpi_operator.kube.leader_election.lease import Timing
from mpi_operator.kube.resources import Key
from tests.support.lease_store import Fault, LeaseClient, LeaseStore, Line

pytestmark = pytest.mark.exhaustive


class End(StrEnum):
    """How a process can end."""

    CRASH = "at once"
    SHUT_DOWN = "after its writers have stopped, with a release"


@dataclass(frozen=True)
class Network:
    """How slow it is, and for how long the kernel keeps what nobody acknowledges."""

    latency: float
    unacknowledged: float


@dataclass(frozen=True)
class Incident:
    """Something happens to one of the processes."""

    who: int
    at: float
    what: Fault | End
    seconds: float


@dataclass(frozen=True)
class Story:
    """A simulation as data. Each process has a clock, as an offset and a rate."""

    seed: int
    timing: Timing
    network: Network
    clocks: list[tuple[float, float]]
    incidents: list[Incident]


class RecordedFence(LeaseFence):
    """A fence that remembers from when to when it was valid, on the one true clock."""

    def __init__(self, offset: float, rate: float) -> None:
        super().__init__(lambda: _now() * rate + offset)
        self._true_time: Callable[[float], float] = lambda reading: (reading - offset) / rate
        self.began = float("inf")
        self.ended = float("inf")
        self._valid_until = float("-inf")

    def extend(self, until: float) -> bool:
        extended = super().extend(until)
        if extended:
            self.began = min(self.began, _now())
            self._valid_until = self._true_time(until)
        return extended

    def close(self, why: str) -> None:
        self.ended = min(self.ended, _now())
        super().close(why)

    def overlaps(self, other: "RecordedFence") -> bool:
        ends = (min(each._valid_until, each.ended) for each in (self, other))
        return max(self.began, other.began) < min(ends)


@dataclass
class World:
    """What the processes of a story share."""

    story: Story
    store: LeaseStore = field(default_factory=LeaseStore)
    fences: list[RecordedFence] = field(default_factory=list)
    writes: list[RecordedFence] = field(default_factory=list)
    leaders: int = 0


class Machine:
    """Runs one process after the other, each of which competes, leads, writes and ends."""

    def __init__(self, world: World, number: int) -> None:
        self._world = world
        self._offset, self._rate = world.story.clocks[number]
        rng = random.Random(world.story.seed + number)
        network = world.story.network
        # Late claims do no harm, because they carry a version; late writes would.
        self._lease_line = Line(lambda: rng.uniform(0, network.latency))
        self._data_line = Line(self._lease_line.latency, held_at_most=network.unacknowledged)
        self._end: asyncio.Future[End] = asyncio.Future()
        self._in_doubt_until = 0.0

    async def suffer(self, incident: Incident) -> None:
        if isinstance(incident.what, End):
            if not self._end.done():
                self._end.set_result(incident.what)
            return
        for line in (self._lease_line, self._data_line):
            line.break_down(incident.what)
        await asyncio.sleep(incident.seconds)
        for line in (self._lease_line, self._data_line):
            line.repair()

    async def run(self) -> None:
        while True:
            self._end = asyncio.Future()
            fence = RecordedFence(self._offset, self._rate)
            self._world.fences.append(fence)
            await self._run_process(fence)
            fence.close("the process has ended")
            await asyncio.sleep(1.0)

    async def _run_process(self, fence: RecordedFence) -> None:
        candidate = self._candidate(fence)
        reign = asyncio.ensure_future(_reign(candidate))
        writing = asyncio.ensure_future(self._write(fence))
        ends: list[asyncio.Future[Any]] = [reign, self._end]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for task in (reign, writing):
            task.cancel()
        await asyncio.wait({reign, writing})
        if self._may_release:
            await candidate.release()

    @property
    def _may_release(self) -> bool:
        """Whether a careful process would: no write of which it does not know what became of it."""
        is_clean = self._end.done() and self._end.result() is End.SHUT_DOWN
        return is_clean and _now() > self._in_doubt_until

    def _candidate(self, fence: RecordedFence) -> Candidate:
        client = cast("Client", LeaseClient(self._world.store, self._lease_line))
        identity = f"process-{len(self._world.fences)}"
        timing = self._world.story.timing
        return Candidate(client, Key("ns", "lock"), identity, timing, fence, fence._clock)

    async def _write(self, fence: RecordedFence) -> None:
        """Write for as long as we may, as the HTTP client does behind a fence."""
        network = self._world.story.network
        while True:
            await asyncio.sleep(0.5)
            with suppress(errors.KubeError, TimeoutError):
                left, before = fence.remaining(), self._in_doubt_until
                self._in_doubt_until = _now() + network.unacknowledged + network.latency
                async with asyncio.timeout(left):
                    await self._data_line.carry(lambda: self._world.writes.append(fence))
                self._in_doubt_until = before


async def _reign(candidate: Candidate) -> None:
    with suppress(errors.NotLeader):
        await candidate.win()
        await candidate.hold()


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _play(story: Story) -> World:
    """Let it all happen, then give it time to calm down, then see who leads."""
    world = World(story)
    machines = [Machine(world, number) for number in range(len(story.clocks))]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(machine.run()) for machine in machines]
        for incident in sorted(story.incidents, key=lambda incident: incident.at):
            await asyncio.sleep(max(0.0, incident.at - _now()))
            group.create_task(machines[incident.who].suffer(incident))
        await asyncio.sleep(CALM)
        world.leaders = sum(fence.is_open for fence in world.fences)
        for task in tasks:
            task.cancel()
    return world


def play(story: Story) -> World:
    def new_loop() -> asyncio.AbstractEventLoop:
        # Nothing here waits for threads or sockets, so time may pass as soon as nothing is ready.
        return looptime.new_event_loop(start=0, noop_cycles=0)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(_play(story))


@pytest.fixture(autouse=True, scope="module")
def _quiet():
    """What thousands of processes have to complain about is of no interest."""
    logger = logging.getLogger("mpi_operator.kube.leader_election.elector")
    logger.disabled = True
    yield
    logger.disabled = False


# A fault lasts that long at most; a dead one's lease runs out, its late claims come, and once more.
LONGEST, CALM = 30.0, 90.0
# As shipped, for clocks that differ; and with hardly any reserve, for clocks that run alike.
ROOMY, TIGHT = Timing(), Timing(lease_seconds=6, renew_seconds=5.0, retry_seconds=3.0)

offsets = st.floats(-1e6, 1e6)
incidents = st.lists(
    st.builds(
        Incident,
        who=st.integers(0, 1),
        at=st.floats(0, 120),
        what=st.sampled_from([*Fault, *End]),
        seconds=st.floats(0, LONGEST),
    ),
    max_size=12,
)


def stories(timing: Timing, network: Network, rates: st.SearchStrategy[float]):
    return st.builds(
        Story,
        seed=st.integers(0, 2**16),
        timing=st.just(timing),
        network=st.just(network),
        clocks=st.lists(st.tuples(offsets, rates), min_size=2, max_size=3),
        incidents=incidents,
    )


@settings(max_examples=60)
@given(
    stories(ROOMY, Network(latency=0.5, unacknowledged=5.0), st.floats(0.8, 1.25))
    | stories(TIGHT, Network(latency=0.3, unacknowledged=0.6), st.just(1.0))
)
def test_there_is_never_more_than_one_leader_and_in_the_end_there_is_one(story):
    world = play(story)
    assert not [pair for pair in combinations(world.fences, 2) if pair[0].overlaps(pair[1])]
    turns = [writer for writer, _ in groupby(map(id, world.writes))]
    assert len(turns) == len(set(turns)), "no write comes after one of the next leader"
    assert world.leaders == 1


def test_the_simulation_is_about_something():
    """Leaders change in it, by crash, by release and by loss, and they all get to write."""
    happenings: list[Fault | End] = [*End, *Fault]
    incidents = [
        Incident(who, 40.0 * number + 20.0 * who, what, 15.0)
        for number, what in enumerate(happenings)
        for who in (0, 1)
    ]
    world = play(Story(1, ROOMY, Network(0.1, 5.0), [(0.0, 1.0), (0.0, 1.0)], incidents))
    assert len({id(writer) for writer in world.writes}) > 4
    assert {fence.why_closed for fence in world.fences} >= {
        "",
        "the process has ended",
        "the lease was released",
        "the lease was not renewed in time",
    }
