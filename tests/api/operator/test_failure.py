"""How a job fails, and what it says about that. Kubernetes' own Job controller decides when."""

from tests.support.jobs import Jobs
from tests.support.mpijobs import mpijob
from tests.support.waiting import until


async def test_a_failed_launcher_pod_alone_does_not_fail_the_job(shared: Jobs) -> None:
    await shared.submit(mpijob("tried-twice", runPolicy={"backoffLimit": 1}))
    first = await shared.start("tried-twice", workers=2)
    await shared.fail(first, message="no route to worker-1")

    async def has_failed_once() -> bool:
        launcher = (await shared.status("tried-twice"))["replicaStatuses"]["Launcher"]
        return bool(launcher.get("failed") == 1)

    await until(has_failed_once)
    assert await shared.condition("tried-twice", "Failed") is None
    assert await shared.has_condition("tried-twice", "Running")

    async def has_another() -> bool:
        return await shared.pod_names("tried-twice", "launcher") not in ([], [first])

    await until(has_another)  # Kubernetes waits ten seconds
    [second] = set(await shared.pod_names("tried-twice", "launcher")) - {first}
    await shared.fail(second, message="still no route")
    await shared.becomes("tried-twice", "Failed")
    assert (await shared.status("tried-twice"))["replicaStatuses"]["Launcher"] == {
        "active": 0,
        "failed": 2,
        "succeeded": 0,
    }


async def test_a_failed_job_reports_the_last_output_of_its_launcher(shared: Jobs) -> None:
    policy = {"backoffLimit": 0, "cleanPodPolicy": "Running"}
    await shared.submit(mpijob("last-words", runPolicy=policy))
    launcher = await shared.start("last-words", workers=2)
    words = "mpirun: rank 3 called abort\nSegmentation fault"
    await shared.fail(launcher, exit_code=134, message=words)
    await shared.becomes("last-words", "Failed", reason="BackoffLimitExceeded")
    failed = await shared.condition("last-words", "Failed")
    assert failed is not None
    assert "exit code 134" in failed["message"]
    assert failed["message"].endswith(words)
    assert await shared.event_messages("last-words", "BackoffLimitExceeded") == [failed["message"]]
    assert await shared.has_condition("last-words", "Running", "False")
    await until(lambda: shared.has_workers("last-words", 0))


async def test_the_reason_of_an_evicted_launcher_is_reported(shared: Jobs) -> None:
    await shared.submit(mpijob("evicted-launcher", runPolicy={"backoffLimit": 0}))
    await shared.evict(await shared.start("evicted-launcher", workers=2))
    await shared.becomes("evicted-launcher", "Failed", reason="BackoffLimitExceeded/Evicted")
    failed = await shared.condition("evicted-launcher", "Failed")
    assert failed is not None
    assert failed["message"].endswith(": The node was low on resource: memory.")


async def test_a_job_that_takes_too_long_fails_at_its_deadline(shared: Jobs) -> None:
    # Long enough to be seen running on a busy machine: it counts from a whole second.
    policy = {"activeDeadlineSeconds": 10, "cleanPodPolicy": "All"}
    await shared.submit(mpijob("deadline", runPolicy=policy))
    await shared.start("deadline", workers=2)
    await shared.becomes("deadline", "Failed", reason="DeadlineExceeded")
    assert len(await shared.event_messages("deadline", "DeadlineExceeded")) == 1
    await until(lambda: shared.has_workers("deadline", 0))
    status = await shared.status("deadline")
    assert status["replicaStatuses"]["Launcher"]["active"] == 0
    assert status["completionTime"] > status["startTime"]
