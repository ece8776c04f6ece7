"""The operator dies at every single write of a job's life, and nobody can tell afterwards."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import looptime
import pytest

from mpi_operator.kube.resources import Manifest
from tests.support.observations import VOLCANO
from tests.support.operators import Operator


class Killed(Exception):
    """The process is gone."""


LIFE: list[str] = [
    "resume",
    "all_workers_run",
    "launcher_runs",
    "worker_fails(1)",
    "all_workers_run",
    "worker_vanishes(0)",
    "all_workers_run",
    "scale(3)",
    "all_workers_run",
    "suspend",
    "kubernetes_acts",
    "resume",
    "all_workers_run",
    "launcher_runs",
    "scale(2)",
    "kubernetes_acts",
    "launcher_pod_succeeds",
    "kubernetes_acts",
    "kubernetes_acts",
]
POLICY = {"cleanPodPolicy": "All", "ttlSecondsAfterFinished": 60}
JOBS: dict[str, dict[str, Any]] = {
    "a usual job": {"policy": POLICY},
    "a launcher that waits, in a gang": {
        "policy": POLICY,
        "launcherCreationPolicy": "WaitForWorkersReady",
        "mpiImplementation": "MPICH",
        "settings": VOLCANO,
    },
    "a launcher that works, suspended at first": {
        "policy": POLICY | {"suspend": True},
        "runLauncherAsWorker": True,
    },
}


def happen(world, step):
    name, _, arguments = step.rstrip(")").partition("(")
    getattr(world, name)(*map(int, arguments.split() if arguments else []))


async def live(operator: Operator, look: Callable[[], Awaitable[None]]) -> Manifest:
    """The life of a job, with all the looks that it needs; the world afterwards."""
    await look()
    for step in LIFE:
        happen(operator.world, step)
        operator.world.pass_time(2)
        await look()
    operator.world.pass_time(60)
    await look()
    return operator.world.snapshot()


async def untouched(job: dict[str, Any]) -> tuple[Manifest, int]:
    operator = Operator(**job)

    async def look() -> None:
        await operator.settle()

    return await live(operator, look), len(operator.client.requests)


async def killed(job: dict[str, Any], moment: str, number: int) -> Manifest:
    """The same life of an operator that dies before, or after, its nth request."""
    operator = Operator(**job)

    def die(_: object) -> None:
        if len(operator.client.requests) >= number:
            raise Killed

    setattr(operator.client, moment, die)

    async def look() -> None:
        try:
            await operator.settle()
        except* Killed:
            operator.client.relent()
            operator.restart()
            await operator.settle()

    return await live(operator, look)


every_job = pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)


@every_job
def test_a_life_ends_as_it_should(job):
    world, _ = run(untouched(job))
    assert "Pod pi-worker-0" not in world
    assert "Job pi-launcher" not in world
    assert world["MPIJob pi"]["status"]["conditions"][-1]["type"] == "Succeeded"


@every_job
@pytest.mark.parametrize("moment", ["answer", "landed"], ids=["before it lands", "after it lands"])
def test_dying_at_any_write_makes_no_difference(job, moment):
    expected, requests = run(untouched(job))
    assert requests > 30
    # Before a request is after the one before it: of both moments, every other one is all of them.
    for number in range(1, requests + 1, 2):
        assert run(killed(job, moment, number)) == expected, f"died at request {number}"


def run(life):
    """In virtual time, and in a loop of its own."""
    with asyncio.Runner(loop_factory=looptime.new_event_loop) as runner:
        return runner.run(life)
