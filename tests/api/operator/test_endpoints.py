"""What the operator serves over HTTP."""

from mpi_operator.kube.resources import PODS
from tests.support.jobs import Jobs
from tests.support.mpijobs import mpijob
from tests.support.operator import Operator
from tests.support.waiting import until


async def _values(process: Operator) -> dict[str, float]:
    """The series that the Go operator has too, and those about our work."""
    _, text = await process.get("/metrics")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    pairs = (line.rpartition(" ") for line in lines)
    return {name: float(value) for name, _, value in pairs}


async def test_jobs_are_counted_from_start_to_end(jobs: Jobs, running_operator: Operator) -> None:
    info = f'mpi_operator_job_info{{launcher="good-launcher",namespace="{jobs.namespace}"}}'
    before = await _values(running_operator)
    for outcome in ("created", "successful", "failed"):
        assert before[f"mpi_operator_jobs_{outcome}_total"] == 0
    assert before["mpi_operator_is_leader"] == 1

    await jobs.submit(mpijob("good"))
    await jobs.submit(mpijob("bad", runPolicy={"backoffLimit": 0}))
    launcher = await jobs.start("good", workers=2)
    assert (await _values(running_operator))[info] == 1
    await jobs.fail("good-worker-0")
    await jobs.event_messages("good", "WorkerReplaced")
    await jobs.succeed(launcher)
    await jobs.becomes("good", "Succeeded")
    await jobs.fail(await jobs.start("bad", workers=2))
    await jobs.becomes("bad", "Failed")

    after = await _values(running_operator)
    assert after["mpi_operator_jobs_created_total"] == 2
    assert after["mpi_operator_jobs_successful_total"] == 1
    assert after["mpi_operator_jobs_failed_total"] == 1
    assert after["mpi_operator_workers_restarted_total"] == 1
    assert info not in after  # upstream keeps it for ever
    assert after['workqueue_depth{name="mpijobs"}'] == 0
    assert sum(v for k, v in after.items() if k.startswith("rest_client_requests_total")) > 0
    assert "mpi_operator_reconcile_duration_seconds_sum" in str(after)


async def test_the_operator_is_healthy_and_ready(running_operator: Operator) -> None:
    assert await running_operator.get("/healthz") == (200, "ok\n")

    async def is_ready() -> bool:
        return await running_operator.get("/readyz") == (200, "ok\n")

    await until(is_ready)  # it has the lease before its caches are complete


async def test_what_is_cached_is_counted(jobs: Jobs, running_operator: Operator) -> None:
    await jobs.submit(mpijob("pi"))
    await until(lambda: jobs.has_workers("pi", 2))
    mark = f'resource="{PODS}"'

    async def are_counted() -> bool:
        values = await _values(running_operator)
        return any("cached" in k and mark in k and v >= 2 for k, v in values.items())

    await until(are_counted)
