"""Elections on a real API server: hand-over, crashes, RBAC, restarts, and a cut network.

No test here counts on a busy machine being quick: where leadership must last, deadlines are long,
and where it must end, they are short.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import groupby
from pathlib import Path

import msgspec
import pytest

from devcluster.control_plane import ControlPlane
from mpi_operator.kube import config, errors
from mpi_operator.kube.client import DeleteOptions, Selector
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.leader_election.elector import Elector
from mpi_operator.kube.leader_election.fence import steady_clock
from mpi_operator.kube.leader_election.lease import Timing
from mpi_operator.kube.resources import (
    CONFIG_MAPS,
    LEASES,
    NAMESPACES,
    ROLE_BINDINGS,
    ROLES,
    Manifest,
)
from tests.api.conftest import StartControlPlane
from tests.api.kube.elector_process import Order
from tests.support import netns
from tests.support.waiting import until

LASTING = Timing(lease_seconds=60, renew_seconds=45.0, retry_seconds=0.5)
BRIEF = Timing(lease_seconds=6, renew_seconds=2.0, retry_seconds=0.5)
ROOT = Path(__file__).parents[3]

NewElector = Callable[..., Elector]


@pytest.fixture
def new_elector(kubeconfig: Path | None, namespace: str) -> NewElector:
    """Makes electors for the same Lease."""

    def new(timing: Timing = LASTING, kubeconfig: Path | None = kubeconfig) -> Elector:
        return elector_for(kubeconfig, namespace, timing)

    return new


def elector_for(kubeconfig: Path | None, namespace: str, timing: Timing) -> Elector:
    settings = config.load(kubeconfig=kubeconfig)
    return Elector(lambda: HttpClient(settings), namespace=namespace, name="lock", timing=timing)


async def stored(client: HttpClient, namespace: str) -> Manifest:
    return await client.get(LEASES, "lock", namespace)


async def holder(client: HttpClient, namespace: str) -> str:
    lease = await stored(client, namespace)
    return str(lease["spec"]["holderIdentity"])


async def leads(elector: Elector, seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        await elector.acquired()


async def test_one_of_two_leads(client, namespace, new_elector):
    async with new_elector() as one, new_elector() as other:
        await until(lambda: one.is_leader or other.is_leader)
        leader, stand_by = (one, other) if one.is_leader else (other, one)
        assert await holder(client, namespace) == leader.identity
        with pytest.raises(errors.NotLeader):
            stand_by.remaining()


async def test_a_clean_shutdown_hands_over_in_less_than_a_second(new_elector):
    """The lease lasts a minute, so it is the release that the stand-by has seen.

    The fastest of some counts, because the machine may be busy. One that polls takes 20s.
    """
    took = [await seconds_to_hand_over(new_elector)]
    while min(took) >= 1.0 and len(took) < 5:
        took.append(await seconds_to_hand_over(new_elector))
    assert min(took) < 1.0, took


async def seconds_to_hand_over(new_elector: NewElector) -> float:
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(new_elector())
        await leads(first)
        async with new_elector(Timing(60, 45.0, 20.0)) as second:
            with pytest.raises(TimeoutError):
                await leads(second, seconds=1.0)
            released_at = steady_clock()
            await stack.aclose()
            await leads(second)
            return steady_clock() - released_at


async def test_the_stored_lease_is_one_that_client_go_understands(client, namespace, new_elector):
    async with new_elector(Timing()) as elector:
        await leads(elector)
        spec = (await stored(client, namespace))["spec"]
        assert spec["holderIdentity"] == elector.identity
        assert (spec["leaseDurationSeconds"], spec["leaseTransitions"]) == (15, 0)
        assert (
            len(spec["renewTime"]) == len(spec["acquireTime"]) == len("2026-01-01T00:00:00.000000Z")
        )
    spec = (await stored(client, namespace))["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("", 1)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="an empty one"),
        pytest.param({"holderIdentity": "", "leaseDurationSeconds": 1}, id="one that Go released"),
        pytest.param({"holderIdentity": "gone", "leaseDurationSeconds": 1}, id="one that ran out"),
    ],
)
async def test_an_unused_lease_is_acquired(client, namespace, new_elector, spec):
    await client.create(
        LEASES, {"metadata": {"namespace": namespace, "name": "lock"}, "spec": spec}
    )
    async with new_elector() as elector:
        await leads(elector)
        assert await holder(client, namespace) == elector.identity


async def test_a_lease_deleted_under_its_holder_comes_back(client, namespace, new_elector):
    async with new_elector() as elector:
        await leads(elector)
        before = (await stored(client, namespace))["metadata"]["uid"]
        await client.delete(LEASES, "lock", namespace, DeleteOptions(uid=before))

        async def is_back() -> bool:
            leases = await client.list(LEASES, namespace)
            return [each["metadata"]["uid"] != before for each in leases.items] == [True]

        await until(is_back)
        assert await holder(client, namespace) == elector.identity
        elector.check()


async def test_a_candidate_without_permission_warns_and_leads_once_it_is_allowed(
    client, namespace, new_elector, control_plane, caplog
):
    async with new_elector(kubeconfig=control_plane.kubeconfig("eve")) as elector:
        await until(lambda: bool(caplog.records))
        assert "leases.coordination.k8s.io" in caplog.records[0].advice
        await allow_leases(client, namespace, "eve")
        await leads(elector)


async def test_a_namespace_may_come_later(client, namespace, kubeconfig, caplog):
    missing = f"{namespace}-later"
    async with elector_for(kubeconfig, missing, LASTING) as elector:
        await until(lambda: bool(caplog.records))
        assert caplog.records[0].advice
        await client.create(NAMESPACES, {"metadata": {"name": missing}})
        await leads(elector)
    await client.delete(NAMESPACES, missing)


async def test_a_restart_of_the_server_within_the_deadline_costs_nothing(fragile):
    async with elector_for(fragile.kubeconfig(), "default", LASTING) as elector:
        await leads(elector)
        await asyncio.to_thread(fragile.kill_apiserver)
        await asyncio.to_thread(fragile.start_apiserver)
        held_until = steady_clock() + elector.remaining()  # NotLeader if the lease was lost
        await until(lambda: steady_clock() + elector.remaining() > held_until + 0.1)


@pytest.mark.parametrize("outage", ["kill_apiserver", "pause_apiserver"])
async def test_a_server_that_is_away_for_too_long_costs_the_lease_in_time(fragile, outage):
    async with elector_for(fragile.kubeconfig(), "default", BRIEF) as elector:
        await leads(elector)
        await asyncio.to_thread(getattr(fragile, outage))
        left, asked_at = left_to(elector), steady_clock()
        assert await elector.lost()
        assert steady_clock() - asked_at < left + elector.grace  # before another one may lead
    with pytest.raises(errors.NotLeader):
        elector.check()


def left_to(elector: Elector) -> float:
    try:
        return elector.remaining()
    except errors.NotLeader:  # it was lost while the server was being stopped
        return 0.0


class ElectorProcess:
    """An elector in a process of its own (see `elector_process`)."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def says(self, word: str, seconds: float = 60) -> None:
        assert self._process.stdout is not None
        async with asyncio.timeout(seconds):
            line = await self._process.stdout.readline()
            said = line.decode().strip() or f"exited with {await self._process.wait()}"
        assert said == word

    async def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


@asynccontextmanager
async def started(order: Order, inside: Sequence[str] = ()) -> AsyncIterator[ElectorProcess]:
    argv = [*inside, sys.executable, "-m", "tests.api.kube.elector_process"]
    process = ElectorProcess(
        await asyncio.create_subprocess_exec(
            *argv, msgspec.json.encode(order), cwd=ROOT, stdout=asyncio.subprocess.PIPE
        )
    )
    try:
        await process.says("ready")
        yield process
    finally:
        await process.kill()


async def test_after_a_crash_the_lease_runs_out(client, namespace, new_elector, control_plane):
    order = Order(str(control_plane.kubeconfig()), namespace, "crashes", BRIEF)
    async with started(order) as first:
        await first.says("leads")
        async with new_elector() as second:
            with pytest.raises(TimeoutError):
                await leads(second, seconds=1.0)
            await first.kill()
            died_at = steady_clock()
            await leads(second)
            # The duration that the dead one asked for counts, not that of the next one.
            assert steady_clock() - died_at < LASTING.lease_seconds / 2


@pytest.fixture
def far_away() -> Iterator[netns.Namespace]:
    if reason := netns.why_not():
        pytest.skip(reason)
    with netns.linked() as namespace:
        yield namespace


@pytest.fixture
def reachable(far_away: netns.Namespace, start_control_plane: StartControlPlane) -> ControlPlane:
    """A control plane that listens where the cut-off namespace can reach it."""
    return start_control_plane(address=far_away.host_address)


async def test_a_leader_that_is_cut_off_never_writes_after_the_next_one(far_away, reachable):
    """Both write as fast as they can, and the first one's kernel still has something to send."""
    kubeconfig = reachable.kubeconfig()
    timing = Timing(lease_seconds=12, renew_seconds=5.0, retry_seconds=0.5)
    first = Order(str(kubeconfig), "default", "first", timing, unacknowledged=5.0, writers=4)
    second = msgspec.structs.replace(first, identity="second")
    async with (
        HttpClient(config.load(kubeconfig=kubeconfig)) as client,
        started(first, inside=far_away.command()) as cut_off,
    ):
        await cut_off.says("leads")
        async with started(second) as successor:
            await until(lambda: has_written(client, "first", 50))
            far_away.cut()
            await until(lambda: far_away.unacknowledged() > 0)
            await cut_off.says("lost")
            await successor.says("leads")
            await until(lambda: has_written(client, "second", 50))
            far_away.heal()
            await until(lambda: far_away.unacknowledged() == 0)
            so_far = len(await versions(client, "second"))
            await until(lambda: has_written(client, "second", so_far + 50))
        assert await turns(client) == ["first", "second"]


async def versions(client: HttpClient, writer: str) -> list[int]:
    listed = await client.list(CONFIG_MAPS, "default", Selector(labels=f"writer={writer}"))
    return [int(each["metadata"]["resourceVersion"]) for each in listed.items]


async def has_written(client: HttpClient, writer: str, count: int) -> bool:
    return len(await versions(client, writer)) >= count


async def turns(client: HttpClient) -> list[str]:
    """Who wrote, in the order in which the server stored it, each run of writes as one."""
    writes = [
        (version, writer)
        for writer in ("first", "second")
        for version in await versions(client, writer)
    ]
    return [writer for writer, _ in groupby(writer for _, writer in sorted(writes))]


async def allow_leases(client: HttpClient, namespace: str, user: str) -> None:
    metadata = {"namespace": namespace, "name": "leases"}
    rule = {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": ["get", "create", "update", "watch"],
    }
    group = "rbac.authorization.k8s.io"
    await client.create(ROLES, {"metadata": metadata, "rules": [rule]})
    await client.create(
        ROLE_BINDINGS,
        {
            "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "leases"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
        },
    )
