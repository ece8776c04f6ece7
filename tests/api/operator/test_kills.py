"""An operator that is killed, at whatever moment, and started again, changes nothing.

The moments that matter are its writes: between two of them the world is the same. So one life of a
job is lived undisturbed, its writes are counted, and then it is lived once for each of them: the
operator dies just after the server has done it, with the answer lost. To die just before a write
leaves the same as to die after the one before it.

Some forty lives with two real processes each would take two cores minutes for nothing but starting
Python. So *every* write is tried with a `Controller` in this process (`support.crashing_operator`),
on the real API server, and a handful of them with real processes and SIGKILL.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from aiohttp import web

from devcluster.control_plane import ControlPlane
from mpi_operator.kube import config, errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import LEASES, NAMESPACES, SERVICE_ACCOUNTS
from tests.support.api_proxy import Forward, api_proxy
from tests.support.crashing_operator import NEVER, Crash, CrashingOperator, crashing_operator
from tests.support.job_lifecycle import (
    EXPECTED_CREATIONS,
    EXPECTED_EVENTS,
    KINDS,
    JobLifecycle,
    Snapshot,
)
from tests.support.jobs import Jobs
from tests.support.mirror import Mirror, mirrored
from tests.support.operator import Operator, account, started

_AT_ONCE = 12  # lives


@pytest.fixture
async def mirror(client: HttpClient) -> AsyncIterator[Mirror]:
    async with mirrored(client, *KINDS, SERVICE_ACCOUNTS) as mirror:
        yield mirror


@pytest.fixture
async def insider(
    client: HttpClient, control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> AsyncIterator[HttpClient]:
    """A client with the permissions of an operator for all namespaces."""
    kubeconfig = await account(
        client, control_plane.kubeconfig(), namespace, tmp_path, "cluster.yaml"
    )
    async with HttpClient(config.load(kubeconfig=kubeconfig)) as insider:
        yield insider


@pytest.mark.timeout(300)
async def test_a_killed_operator_that_is_started_again_ends_in_the_same_world(
    client: HttpClient, mirror: Mirror, insider: HttpClient
) -> None:
    undisturbed, lifecycle = await _live(client, mirror, insider, NEVER)
    assert undisturbed.crashes == 0
    writes = len(undisturbed.writes)
    slots = asyncio.Semaphore(_AT_ONCE)

    async def live(at: int) -> int:
        async with slots:
            crash = Crash(at, is_answered=True)
            crashing, _ = await _live(client, mirror, insider, crash, lifecycle.states)
            return crashing.crashes

    # A few more than there were, because runs differ a little, and one that no run reaches.
    moments = (*range(1, writes + 6), writes + 15)
    async with asyncio.TaskGroup() as group:
        lives = [group.create_task(live(at)) for at in moments]
    crashes = [life.result() for life in lives]
    assert sum(crashes) >= writes - 5
    assert crashes[-1] == 0


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "crash",
    [
        pytest.param(Crash(2, is_answered=True, times=1000), id="after each second write"),
        pytest.param(Crash(3, is_answered=False, times=1000), id="before each third write"),
    ],
)
async def test_an_operator_that_dies_again_and_again_gets_there_all_the_same(
    client: HttpClient, mirror: Mirror, insider: HttpClient, crash: Crash
) -> None:
    _, lifecycle = await _live(client, mirror, insider, NEVER)
    crashing, _ = await _live(client, mirror, insider, crash, lifecycle.states)
    assert crashing.crashes > 5


async def _live(
    client: HttpClient,
    mirror: Mirror,
    insider: HttpClient,
    crash: Crash,
    expected: dict[str, Snapshot] | None = None,
) -> tuple[CrashingOperator, JobLifecycle]:
    """A life in a namespace of its own, in which the operator dies."""
    lifecycle = JobLifecycle(
        mirror, Jobs(client, await _namespace(client, mirror)), expected=expected or {}
    )
    async with crashing_operator(insider, lifecycle.namespace, crash) as crashing:
        try:
            await lifecycle.run()
        except Exception as error:
            error.add_note(f"{lifecycle.namespace}: crashed {crash}; writes: {crashing.writes}")
            raise
    assert lifecycle.creations() == EXPECTED_CREATIONS, f"crashed {crash}: {crashing.writes}"
    reasons = await lifecycle.event_reasons()
    assert reasons <= EXPECTED_EVENTS
    # Events follow what they tell of, so those who die in between leave a few untold.
    assert len(EXPECTED_EVENTS - reasons) <= 2 * crashing.crashes
    return crashing, lifecycle


async def _namespace(client: HttpClient, mirror: Mirror) -> str:
    """A namespace in which pods can be made: they need a service account."""
    created = await client.create(NAMESPACES, {"metadata": {"generateName": "kills-"}})
    name: str = created["metadata"]["name"]
    await mirror.until(lambda: bool(mirror.all(SERVICE_ACCOUNTS, name)), name)
    return name


class Killer:
    """Kills an operator at one of its writes, and has it started again."""

    def __init__(self, crash: Crash) -> None:
        self.count = 0
        self.moment = asyncio.Event()
        self.is_dead = asyncio.Event()
        self._crash = crash

    async def write(self, request: web.Request, forward: Forward) -> web.StreamResponse:
        self.count += 1
        if self.count != self._crash.at:
            return await forward()
        if self._crash.is_answered:
            await forward()
        self.moment.set()
        await self.is_dead.wait()
        raise ConnectionResetError


@pytest.mark.timeout(180)
async def test_a_process_that_is_killed_and_started_again_ends_in_the_same_world(
    client: HttpClient, mirror: Mirror, insider: HttpClient, control_plane: ControlPlane,
    tmp_path: Path,
) -> None:  # fmt: skip
    undisturbed, lifecycle = await _live(client, mirror, insider, NEVER)
    writes = len(undisturbed.writes)
    crashes = [
        Crash(2, is_answered=True),
        Crash(writes // 3, is_answered=False),
        Crash(writes // 2, is_answered=True),
        Crash(writes - 4, is_answered=False),
    ]

    async def live(number: int, crash: Crash) -> None:
        directory = tmp_path / str(number)
        directory.mkdir()
        namespace = await _namespace(client, mirror)
        killer = Killer(crash)
        retold = JobLifecycle(mirror, Jobs(client, namespace), expected=lifecycle.states)
        async with api_proxy(control_plane, directory, killer) as admin:
            kubeconfig = await account(client, admin, namespace, directory, "namespaced.yaml")
            flags = (f"--namespace={namespace}", f"--lock-namespace={namespace}")
            process = Operator(kubeconfig, directory / "operator.log", *flags)
            async with started(process):
                restarting = asyncio.create_task(
                    _kill_and_restart(client, process, killer, namespace)
                )
                await retold.run()
                await restarting
        assert retold.creations() == EXPECTED_CREATIONS, str(crash)

    async with asyncio.TaskGroup() as group:
        for number, crash in enumerate(crashes):
            group.create_task(live(number, crash))


async def _kill_and_restart(
    client: HttpClient, process: Operator, killer: Killer, namespace: str
) -> None:
    await killer.moment.wait()
    await process.kill()
    killer.is_dead.set()
    # The next one waits until the lease has run out, which takes 20 seconds. Its only meaning is
    # that nothing else writes any more. `kill` has waited until the process had ended.
    with suppress(errors.NotFound):
        await client.delete(LEASES, "mpi-operator", namespace)
    await process.start()
