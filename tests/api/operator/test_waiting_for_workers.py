"""Launchers that come only after their workers."""

from mpi_operator.kube.resources import JOBS, Manifest
from tests.support.jobs import Jobs
from tests.support.mpijobs import mpijob
from tests.support.waiting import until

_WAITING: Manifest = {"launcherCreationPolicy": "WaitForWorkersReady"}


async def _are_running(jobs: Jobs, job: str, count: int) -> bool:
    replicas = (await jobs.status(job)).get("replicaStatuses", {})
    return bool(replicas.get("Worker", {}).get("active") == count)


async def test_there_is_no_launcher_before_every_worker_is_ready(shared: Jobs) -> None:
    await shared.submit(mpijob("patient", **_WAITING))
    await shared.start_workers("patient", 2, ready=False)
    await until(lambda: _are_running(shared, "patient", 2))
    assert await shared.find(JOBS, "patient-launcher") is None
    assert "Launcher" not in (await shared.status("patient"))["replicaStatuses"]

    await shared.run("patient-worker-0")
    await shared.scale("patient", 3)  # so the operator has reconciled again
    await shared.observes("patient", 2)
    assert await shared.find(JOBS, "patient-launcher") is None

    await shared.start_workers("patient", 3)
    await shared.run(await shared.launcher_pod("patient"))
    await shared.becomes("patient", "Running")
    assert (await shared.status("patient"))["replicaStatuses"]["Launcher"]["active"] == 1


async def test_a_launcher_that_runs_does_not_wait_again(shared: Jobs) -> None:
    await shared.submit(mpijob("no-second-wait", **_WAITING))
    launcher = await shared.start("no-second-wait", workers=2)
    await shared.run("no-second-wait-worker-0", ready=False)
    await shared.scale("no-second-wait", 3)
    await shared.observes("no-second-wait", 2)  # so the operator has seen that it is not ready
    assert (await shared.launcher_job("no-second-wait"))["spec"]["suspend"] is False
    assert await shared.pod_names("no-second-wait", "launcher") == [launcher]
    await shared.succeed(launcher)
    await shared.becomes("no-second-wait", "Succeeded")


async def test_a_job_that_was_created_suspended_waits_when_it_is_resumed(shared: Jobs) -> None:
    await shared.submit(mpijob("slept", runPolicy={"suspend": True}, **_WAITING))
    await shared.becomes("slept", "Suspended")
    await shared.suspend("slept", suspend=False)
    await shared.start_workers("slept", 2, ready=False)
    await until(lambda: _are_running(shared, "slept", 2))
    assert (await shared.launcher_job("slept"))["spec"]["suspend"] is True
    assert await shared.pod_names("slept", "launcher") == []

    await shared.start("slept", workers=2)
    assert (await shared.launcher_job("slept"))["spec"]["suspend"] is False


async def test_a_job_that_ran_waits_when_it_is_suspended_and_resumed(shared: Jobs) -> None:
    await shared.submit(mpijob("ran-and-slept", **_WAITING))
    await shared.start("ran-and-slept", workers=2)
    await shared.suspend("ran-and-slept")
    await until(lambda: shared.has_workers("ran-and-slept", 0))
    await shared.suspend("ran-and-slept", suspend=False)
    await shared.start_workers("ran-and-slept", 2, ready=False)
    await until(lambda: _are_running(shared, "ran-and-slept", 2))
    assert (await shared.launcher_job("ran-and-slept"))["spec"]["suspend"] is True

    await shared.start("ran-and-slept", workers=2)
