"""The operator crashes at every single write of a job, and the result is the same."""

from collections.abc import Callable
from typing import Any

import pytest

from mpi_operator.kube.resources import Manifest
from tests.support.observations import VOLCANO
from tests.support.worlds import World


class Killed(Exception):
    """The process has crashed."""


STEPS: list[str] = [
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


def run_job(world: World, settle: Callable[[], object]) -> Manifest:
    """The world after a whole job with all its reconciles."""
    settle()
    for step in STEPS:
        happen(world, step)
        world.pass_time(2)
        settle()
    world.pass_time(60)
    settle()
    return world.snapshot()


def undisturbed(job: dict[str, Any]) -> tuple[Manifest, int]:
    world = World(**job)
    return run_job(world, world.settle), len(world.client.requests)


def crashed(job: dict[str, Any], moment: str, number: int) -> Manifest:
    """The same job with an operator that crashes before or after its nth request."""
    world = World(**job)

    def crash(_: object) -> None:
        if len(world.client.requests) >= number:
            raise Killed

    setattr(world.client, moment, crash)

    def settle() -> None:
        try:
            world.settle()
        except* Killed:
            world.client.relent()
            world.restart()
            world.settle()

    return run_job(world, settle)


every_job = pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)


@every_job
def test_an_undisturbed_job_ends_as_expected(job):
    world, _ = undisturbed(job)
    assert "Pod pi-worker-0" not in world
    assert "Job pi-launcher" not in world
    assert world["MPIJob pi"]["status"]["conditions"][-1]["type"] == "Succeeded"


@every_job
@pytest.mark.parametrize("moment", ["before", "after"], ids=["before it lands", "after it lands"])
def test_crashing_at_any_write_makes_no_difference(job, moment):
    expected, requests = undisturbed(job)
    assert requests > 30
    # Before a request is after the one before it: of both moments, every other one is all of them.
    for number in range(1, requests + 1, 2):
        assert crashed(job, moment, number) == expected, f"died at request {number}"
