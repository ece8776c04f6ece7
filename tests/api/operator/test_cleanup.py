"""What is left of a job that has ended, and that it never runs again."""

import pytest

from mpi_operator.kube.resources import CONFIG_MAPS, JOBS, PODS, SECRETS, SERVICES, Manifest
from tests.api.operator.conftest import StartOperator
from tests.support.jobs import Jobs
from tests.support.mpijobs import MPIJOBS, mpijob
from tests.support.operator import Operator
from tests.support.waiting import until

_TTL_DELETES_JOB = "mpi-operator.kubeflow.org/ttl-deletes-job"


@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        pytest.param("All", [], id="All: every worker goes"),
        pytest.param("Running", [2], id="Running: those that ended are kept for their logs"),
        pytest.param("None", [0, 1, 2], id="None: all are kept"),
    ],
)
async def test_the_policy_decides_which_workers_are_kept(
    shared: Jobs, policy: str, kept: list[int]
) -> None:
    job = f"kept-{policy.lower()}"
    worker = {"replicas": 3, "restartPolicy": "Never"}
    await shared.submit(mpijob(job, worker=worker, runPolicy={"cleanPodPolicy": policy}))
    launcher = await shared.start(job, workers=3)
    await shared.succeed(f"{job}-worker-2")
    await shared.succeed(launcher)
    await shared.becomes(job, "Succeeded")
    await until(lambda: shared.has_workers(job, len(kept)))
    await shared.submit(mpijob(f"{job}-next"))
    await shared.finish(f"{job}-next", workers=2)
    names = [f"{job}-worker-{index}" for index in kept]
    assert await shared.pod_names(job, "worker") == names
    assert await shared.find(JOBS, f"{job}-launcher") is not None
    assert (await shared.status(job))["replicaStatuses"]["Worker"]["active"] == 0


@pytest.mark.parametrize("seconds", [0, 1])
async def test_the_launcher_goes_after_its_time_to_live_and_the_job_does_not_run_again(
    shared: Jobs, seconds: int
) -> None:
    job = f"ttl-{seconds}"
    policy = {"ttlSecondsAfterFinished": seconds, "cleanPodPolicy": "All"}
    await shared.submit(mpijob(job, runPolicy=policy))
    await shared.finish(job, workers=2)
    await shared.gone(JOBS, f"{job}-launcher")
    ended = await shared.job(job)
    await shared.submit(mpijob(f"{job}-next"))
    await shared.finish(f"{job}-next", workers=2)  # time enough to make a mistake
    assert await shared.job(job) == ended
    assert await shared.pods(job) == []
    assert await shared.find(JOBS, f"{job}-launcher") is None


async def test_the_job_itself_goes_with_everything_where_that_is_asked_for(shared: Jobs) -> None:
    # Long enough to be seen as finished, even by a test on a busy machine.
    policy = {"ttlSecondsAfterFinished": 4, "cleanPodPolicy": "None"}
    job = mpijob("fleeting", runPolicy=policy)
    job["metadata"]["annotations"] = {_TTL_DELETES_JOB: "true"}
    await shared.submit(job)
    await shared.finish("fleeting", workers=2)
    await shared.gone(MPIJOBS, "fleeting")
    await shared.gone(JOBS, "fleeting-launcher")
    await until(lambda: shared.has_workers("fleeting", 0))


async def test_a_launcher_whose_deletion_others_hold_up_costs_nothing(
    jobs: Jobs, running_operator: Operator
) -> None:
    await jobs.submit(mpijob("pi", runPolicy={"ttlSecondsAfterFinished": 1}))
    launcher = await jobs.start("pi", workers=2)
    held = {"metadata": {"finalizers": ["example.com/held"]}}
    await jobs.client.patch(JOBS, "pi-launcher", held, jobs.namespace)
    await jobs.succeed(launcher)

    async def is_ending() -> bool:
        found = await jobs.find(JOBS, "pi-launcher")
        return found is not None and "deletionTimestamp" in found["metadata"]

    await until(is_ending)
    before = await _looks(running_operator)
    await jobs.submit(mpijob("next"))
    await jobs.finish("next", workers=2)
    assert await _looks(running_operator) - before < 100
    free = {"metadata": {"finalizers": None}}
    await jobs.client.patch(JOBS, "pi-launcher", free, jobs.namespace)
    await jobs.gone(JOBS, "pi-launcher")


async def _looks(process: Operator) -> float:
    """How often the operator looked at jobs."""
    _, metrics = await process.get("/metrics")
    mark = "mpi_operator_reconcile_duration_seconds_count"
    found = [line for line in metrics.splitlines() if line.startswith(mark)]
    return sum(float(line.rpartition(" ")[2]) for line in found)


async def _is_complete(jobs: Jobs, job: str) -> bool:
    conditions = (await jobs.launcher_job(job)).get("status", {}).get("conditions", [])
    return ("Complete", "True") in [(each["type"], each["status"]) for each in conditions]


async def test_a_job_that_ended_while_the_operator_was_down_ends_once(
    jobs: Jobs, start_operator: StartOperator
) -> None:
    operator = await start_operator()
    policy = {"ttlSecondsAfterFinished": 0, "cleanPodPolicy": "All"}
    await jobs.submit(mpijob("pi", runPolicy=policy))
    launcher = await jobs.start("pi", workers=2)
    await operator.stop()
    await jobs.succeed(launcher)
    await until(lambda: _is_complete(jobs, "pi"))

    await start_operator()
    await jobs.becomes("pi", "Succeeded")
    await until(lambda: jobs.has_workers("pi", 0))
    await jobs.gone(JOBS, "pi-launcher")
    await jobs.submit(mpijob("next"))
    await jobs.finish("next", workers=2)
    assert await jobs.pods("pi") == []
    assert await jobs.find(JOBS, "pi-launcher") is None
    assert len(await jobs.event_messages("pi", "MPIJobSucceeded")) == 1


async def test_a_job_that_is_deleted_takes_everything_with_it(shared: Jobs) -> None:
    await shared.submit(mpijob("deleted"))
    await shared.start("deleted", workers=2)
    await shared.client.delete(MPIJOBS, "deleted", shared.namespace)
    await until(lambda: _has_nothing(shared, "deleted"))
    events = await shared.events("deleted")
    await shared.submit(mpijob("not-deleted"))
    await shared.finish("not-deleted", workers=2)
    assert await _has_nothing(shared, "deleted")
    assert await shared.events("deleted") == events


async def test_another_job_of_the_same_name_starts_afresh(shared: Jobs) -> None:
    await shared.submit(mpijob("phoenix"))
    await shared.start("phoenix", workers=2)
    before = {pod["metadata"]["uid"] for pod in await shared.pods("phoenix")}
    await shared.client.delete(MPIJOBS, "phoenix", shared.namespace)
    await shared.submit(mpijob("phoenix"))
    # What is left of the old one has the names that the new one needs, until it is collected.
    await until(lambda: _are_others(shared, "phoenix", before), 120)
    await shared.finish("phoenix", workers=2)


async def _are_others(jobs: Jobs, job: str, before: set[str]) -> bool:
    uids = {pod["metadata"]["uid"] for pod in await jobs.pods(job)}
    return len(uids) == 3 and not uids & before


async def _has_nothing(jobs: Jobs, job: str) -> bool:
    found: list[Manifest | None] = [
        await jobs.find(resource, job + suffix)
        for resource, suffix in (
            (JOBS, "-launcher"),
            (CONFIG_MAPS, "-config"),
            (SECRETS, "-ssh"),
            (SERVICES, ""),
            (PODS, "-worker-0"),
            (PODS, "-worker-1"),
        )
    ]
    return not any(found) and not await jobs.pods(job)
