"""The Job controller is killed at any of its writes and restarted: the outcome is the same."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any

import looptime
import pytest

from mpi_operator.kube.resources import JOBS, PODS
from mpi_operator.local.jobs.job_controller import JobController
from mpi_operator.local.jobs.job_decisions import PodFailureBackoff
from tests.unit.local.clusters import a_cluster, virtual_now
from tests.unit.local.jobs import job_manifest
from tests.unit.local.scripted_node import ScriptedNode

pytestmark = pytest.mark.exhaustive

BACKOFF = PodFailureBackoff(initial=timedelta(seconds=1), maximum=timedelta(seconds=8))
NEVER = 10_000


class Killed(BaseException):
    """An exception that no code catches."""


@dataclass
class KillingClient:
    """Kills its user at the write after the first `writes`, before or after that is done."""

    cluster: Any
    writes: int
    is_done: bool

    def __getattr__(self, verb):
        method = getattr(self.cluster, verb)
        return self.fatal(method) if verb in ("create", "replace", "patch", "delete") else method

    def fatal(self, method):
        async def write(*arguments, **options):
            self.writes -= 1
            if self.writes >= 0:
                return await method(*arguments, **options)
            if self.is_done:
                await method(*arguments, **options)
            raise Killed

        return write


async def keep_running(client):
    """A Job controller, and after it was killed a second one."""
    try:
        await JobController(client, backoff=BACKOFF, clock=virtual_now).run()
    except BaseExceptionGroup as died:
        if not died.subgroup(Killed):
            raise
    await JobController(client.cluster, backoff=BACKOFF, clock=virtual_now).run()


async def suspend(cluster, is_suspended):
    await cluster.patch(JOBS, "j", {"spec": {"suspend": is_suspended}}, "here")


async def nothing_happens(cluster):
    await asyncio.sleep(0)


async def suspended_for_a_while(cluster):
    await asyncio.sleep(3)
    await suspend(cluster, True)
    await asyncio.sleep(20)
    await suspend(cluster, False)


def suspended_for_a_moment(turns):
    async def happening(cluster):
        await asyncio.sleep(3)
        await suspend(cluster, True)
        for _ in range(turns):
            await asyncio.sleep(0)
        await suspend(cluster, False)

    return happening


async def suspended_for_good(cluster):
    await asyncio.sleep(3)
    await suspend(cluster, True)


async def pod_deleted(cluster):
    await asyncio.sleep(3)
    for pod in (await cluster.list(PODS)).items:
        await cluster.delete(PODS, pod["metadata"]["name"], "here")


@dataclass(frozen=True)
class Scenario:
    """A Job, what its pods do one after the other, and what the user does."""

    plans: tuple[tuple[float, int] | None, ...]
    spec: dict[str, Any]
    happening: Any = nothing_happens


SCENARIOS = [
    pytest.param(Scenario(((1, 1), (1, 0)), {}), id="a failure and a success"),
    pytest.param(Scenario(((1, 1),), {"backoffLimit": 2}), id="too many failures"),
    pytest.param(Scenario((None,), {"activeDeadlineSeconds": 5}), id="a deadline"),
    pytest.param(Scenario((None, (2, 0)), {}, suspended_for_a_while), id="suspended and resumed"),
    pytest.param(
        Scenario((None, (2, 0)), {"backoffLimit": 0}, suspended_for_a_while),
        id="suspended and resumed, with a backoff limit of 0",
    ),
    pytest.param(Scenario((None,), {}, suspended_for_good), id="suspended for good"),
    pytest.param(Scenario((None, (2, 0)), {}, pod_deleted), id="its pod is deleted"),
    pytest.param(Scenario(((1, 0),), {"ttlSecondsAfterFinished": 3}), id="its TTL passes"),
]


async def outcome(scenario, writes, is_done):
    """The objects at the end, without random names, and whether a controller was killed."""
    plans = list(scenario.plans)
    cluster = a_cluster(clock=virtual_now)
    node = ScriptedNode(cluster, lambda _: plans.pop(0) if len(plans) > 1 else plans[0])
    client = KillingClient(cluster, writes, is_done)
    tasks = [asyncio.create_task(node.run()), asyncio.create_task(keep_running(client))]
    await cluster.create(JOBS, job_manifest(**scenario.spec))
    await scenario.happening(cluster)
    await asyncio.sleep(200)
    for task in tasks:
        assert not task.done(), task.exception()
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    jobs, pods = (await cluster.list(JOBS)).items, (await cluster.list(PODS)).items
    held = [pod for pod in pods if pod["metadata"].get("finalizers")]
    found = [summary(job) for job in jobs], sorted(map(phase, pods)), len(held), node.started
    return found, client.writes < 0


def summary(job):
    status = job["status"]
    conditions = [
        (each["type"], each["status"], each["reason"]) for each in status.get("conditions", ())
    ]
    return conditions, {key: status.get(key, 0) for key in ("active", "failed", "succeeded")}


def phase(pod):
    return pod["status"]["phase"]


def run(coroutine):
    loop = looptime.new_event_loop(start=0)
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.close()


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_job_ends_the_same_wherever_its_controller_is_killed(scenario, is_done):
    undisturbed, _ = run(outcome(scenario, NEVER, is_done))
    for writes in count():
        found, was_killed = run(outcome(scenario, writes, is_done))
        assert found == undisturbed, f"killed at write {writes}"
        if not was_killed:
            break
    assert writes > 3


@pytest.mark.parametrize("writes", [NEVER, 2, 3, 4, 5, 6])
def test_a_short_suspension_is_no_failure(writes):
    for turns in range(15):
        happening = suspended_for_a_moment(turns)
        scenario = Scenario((None, (2, 0), (2, 0)), {"backoffLimit": 0}, happening)
        ([(conditions, counts)], *_), _ = run(outcome(scenario, writes, is_done=True))
        assert ("Failed", "True", "BackoffLimitExceeded") not in conditions, f"{turns} turns"
        assert counts["failed"] == 0
