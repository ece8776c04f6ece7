"""The operator crashes at every single write of a job, and the result is the same."""

from collections.abc import Callable
from typing import Any

import pytest

from mpi_operator.api.annotations import LOST_WORKERS, WRITTEN_IN
from mpi_operator.kube.resources import Manifest
from tests.support.observations import VOLCANO
from tests.support.worlds import World

pytestmark = pytest.mark.exhaustive


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
# The launcher loses a worker twice and ends with 0, and succeeds in its third try.
LOSSES: list[str] = [
    "all_workers_run",
    "launcher_runs",
    "worker_vanishes(1)",
    "launcher_pod_succeeds",
    "kubernetes_acts",
    "all_workers_run",
    "launcher_runs",
    "worker_fails(0)",
    "launcher_pod_succeeds",
    "kubernetes_acts",
    "all_workers_run",
    "launcher_runs",
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
    "a launcher that is tried again": {
        "policy": POLICY | {"backoffLimit": 2},
        "annotations": {LOST_WORKERS: "fail"},
        "steps": LOSSES,
    },
    "a launcher that is tried again, of which all is kept": {
        "policy": {"cleanPodPolicy": "None", "backoffLimit": 3},
        "annotations": {LOST_WORKERS: "fail", WRITTEN_IN: "v1alpha2"},
        "steps": LOSSES,
    },
}


def happen(world, step):
    name, _, arguments = step.rstrip(")").partition("(")
    getattr(world, name)(*map(int, arguments.split() if arguments else []))


def run_job(world: World, settle: Callable[[], object], steps: list[str]) -> Manifest:
    """The world after a whole job with all its reconciles."""
    settle()
    for step in steps:
        happen(world, step)
        world.pass_time(2)
        settle()
    world.pass_time(60)
    settle()
    return world.snapshot()


def undisturbed(job: dict[str, Any]) -> tuple[Manifest, int]:
    world, steps = a_world(**job)
    return run_job(world, world.settle, steps), len(world.client.requests)


def a_world(steps: list[str] = STEPS, **job: Any) -> tuple[World, list[str]]:
    return World(**job), steps


def crashed(job: dict[str, Any], moment: str, number: int) -> Manifest:
    """The same job with an operator that crashes before or after its nth request."""
    world, steps = a_world(**job)

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

    return run_job(world, settle, steps)


every_job = pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)


@every_job
def test_an_undisturbed_job_ends_as_expected(job):
    world, _ = undisturbed(job)
    is_kept = job["policy"]["cleanPodPolicy"] == "None"
    assert ("Pod pi-worker-0" in world) == is_kept
    assert ("Job pi-launcher" in world) == is_kept
    assert len(world.get("launcher pods", ())) == (3 if is_kept else 0)
    assert world["MPIJob pi"]["status"]["conditions"][-1]["type"] == "Succeeded"


@every_job
@pytest.mark.parametrize("moment", ["before", "after"], ids=["before it lands", "after it lands"])
def test_crashing_at_any_write_makes_no_difference(job, moment):
    expected, requests = undisturbed(job)
    assert requests > 25
    # Before a request is after the one before it: of both moments, every other one is all of them.
    for number in range(1, requests + 1, 2):
        assert crashed(job, moment, number) == expected, f"died at request {number}"
