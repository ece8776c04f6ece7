"""An operator that is killed, at whatever moment, and started again, changes nothing.

The moments that matter are its writes: between two of them the world is the same. So one life of a
job is lived undisturbed, its writes are counted, and then it is lived once for each of them: the
operator dies just after the server has done it, with the answer lost. To die just before a write
leaves the same as to die after the one before it.

Some forty lives with two real processes each would take two cores minutes for nothing but starting
Python. So *every* write is tried with a `Controller` in this process (`support.mortal`),
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
from tests.support.gateway import Forward, gateway
from tests.support.hands import Hands
from tests.support.mirror import Mirror, mirrored
from tests.support.mortal import NEVER, Death, Mortal, mortal_operator
from tests.support.operator import Operator, account, started
from tests.support.story import EXPECTED_BIRTHS, EXPECTED_EVENTS, KINDS, Story, World

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
    undisturbed, story = await _live(client, mirror, insider, NEVER)
    assert undisturbed.deaths == 0
    writes = len(undisturbed.writes)
    slots = asyncio.Semaphore(_AT_ONCE)

    async def live(at: int) -> int:
        async with slots:
            death = Death(at, is_answered=True)
            mortal, _ = await _live(client, mirror, insider, death, story.scenes)
            return mortal.deaths

    # A few more than there were, for lives differ a little; and one that nobody comes to.
    moments = (*range(1, writes + 6), writes + 15)
    async with asyncio.TaskGroup() as group:
        lives = [group.create_task(live(at)) for at in moments]
    deaths = [life.result() for life in lives]
    assert sum(deaths) >= writes - 5
    assert deaths[-1] == 0


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "death",
    [
        pytest.param(Death(2, is_answered=True, times=1000), id="after each second write"),
        pytest.param(Death(3, is_answered=False, times=1000), id="before each third write"),
    ],
)
async def test_an_operator_that_dies_again_and_again_gets_there_all_the_same(
    client: HttpClient, mirror: Mirror, insider: HttpClient, death: Death
) -> None:
    _, story = await _live(client, mirror, insider, NEVER)
    mortal, _ = await _live(client, mirror, insider, death, story.scenes)
    assert mortal.deaths > 5


async def _live(
    client: HttpClient,
    mirror: Mirror,
    insider: HttpClient,
    death: Death,
    expected: dict[str, World] | None = None,
) -> tuple[Mortal, Story]:
    """A life in a namespace of its own, in which the operator dies."""
    story = Story(mirror, Hands(client, await _namespace(client, mirror)), expected=expected or {})
    async with mortal_operator(insider, story.namespace, death) as mortal:
        try:
            await story.tell()
        except Exception as error:
            error.add_note(f"{story.namespace}: died {death}; writes: {mortal.writes}")
            raise
    assert story.births() == EXPECTED_BIRTHS, f"died {death}: {mortal.writes}"
    reasons = await story.event_reasons()
    assert reasons <= EXPECTED_EVENTS
    # Events follow what they tell of, so those who die in between leave a few untold.
    assert len(EXPECTED_EVENTS - reasons) <= 2 * mortal.deaths
    return mortal, story


async def _namespace(client: HttpClient, mirror: Mirror) -> str:
    """A namespace in which pods can be made: they need a service account."""
    created = await client.create(NAMESPACES, {"metadata": {"generateName": "kills-"}})
    name: str = created["metadata"]["name"]
    await mirror.until(lambda: bool(mirror.all(SERVICE_ACCOUNTS, name)), name)
    return name


class Killer:
    """Kills an operator at one of its writes, and has it started again."""

    def __init__(self, death: Death) -> None:
        self.count = 0
        self.moment = asyncio.Event()
        self.is_dead = asyncio.Event()
        self._death = death

    async def write(self, request: web.Request, forward: Forward) -> web.StreamResponse:
        self.count += 1
        if self.count != self._death.at:
            return await forward()
        if self._death.is_answered:
            await forward()
        self.moment.set()
        await self.is_dead.wait()
        raise ConnectionResetError


@pytest.mark.timeout(180)
async def test_a_process_that_is_killed_and_started_again_ends_in_the_same_world(
    client: HttpClient, mirror: Mirror, insider: HttpClient, control_plane: ControlPlane,
    tmp_path: Path,
) -> None:  # fmt: skip
    undisturbed, story = await _live(client, mirror, insider, NEVER)
    writes = len(undisturbed.writes)
    deaths = [
        Death(2, is_answered=True),
        Death(writes // 3, is_answered=False),
        Death(writes // 2, is_answered=True),
        Death(writes - 4, is_answered=False),
    ]

    async def live(number: int, death: Death) -> None:
        directory = tmp_path / str(number)
        directory.mkdir()
        namespace = await _namespace(client, mirror)
        killer = Killer(death)
        told = Story(mirror, Hands(client, namespace), expected=story.scenes)
        async with gateway(control_plane, directory, killer) as admin:
            kubeconfig = await account(client, admin, namespace, directory, "namespaced.yaml")
            flags = (f"--namespace={namespace}", f"--lock-namespace={namespace}")
            process = Operator(kubeconfig, directory / "operator.log", *flags)
            async with started(process):
                restarting = asyncio.create_task(
                    _kill_and_restart(client, process, killer, namespace)
                )
                await told.tell()
                await restarting
        assert told.births() == EXPECTED_BIRTHS, str(death)

    async with asyncio.TaskGroup() as group:
        for number, death in enumerate(deaths):
            group.create_task(live(number, death))


async def _kill_and_restart(
    client: HttpClient, process: Operator, killer: Killer, namespace: str
) -> None:
    await killer.moment.wait()
    await process.kill()
    killer.is_dead.set()
    # The next one waits until the lease has run out, which takes 20 seconds. Its only meaning is
    # that nobody else writes any more. The dead do not, and `kill` has waited for the death.
    with suppress(errors.NotFound):
        await client.delete(LEASES, "mpi-operator", namespace)
    await process.start()
