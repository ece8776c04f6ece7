"""Requests that the server refuses for now: reported in its own words, and retried."""

import re
import time

import pytest

from mpi_operator.kube.resources import JOBS, PODS, SERVICE_ACCOUNTS, Resource
from tests.support import policies
from tests.support.jobs import Jobs
from tests.support.mpijobs import MPIJOBS, mpijob, template
from tests.support.operator import Operator
from tests.support.waiting import until

PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False
)


async def _reported(jobs: Jobs, job: str, reason: str) -> str:
    """Wait until a job does not run for this reason; the message, which is also an event."""
    await jobs.becomes(job, "Running", "False", reason)
    condition = await jobs.condition(job, "Running")
    assert condition is not None
    message: str = condition["message"]
    assert await jobs.event_messages(job, reason) == [message]
    assert await jobs.condition(job, "Failed") is None
    return message


async def test_a_quota_is_reported_and_when_it_is_lifted_the_job_continues(private: Jobs) -> None:
    quota = await policies.limit(private.client, private.namespace, pods="1")
    await private.submit(mpijob("pi"))
    message = await _reported(private, "pi", "QuotaExceeded")
    assert "pi-worker-" in message
    assert "exceeded quota: tight, requested: pods=1, used: pods=1, limited: pods=1" in message
    assert await private.find(JOBS, "pi-launcher") is None
    await private.client.delete(policies.QUOTAS, quota, private.namespace)
    await until(lambda: private.has_workers("pi", 2))
    await private.becomes("pi", "Running", "False", "MPIJobStarting")
    await private.finish("pi", workers=2)


async def test_of_many_that_are_refused_one_is_named(private: Jobs) -> None:
    await policies.limit(private.client, private.namespace, pods="3")
    await private.submit(mpijob("pi", worker={"replicas": 12}))
    message = await _reported(private, "pi", "QuotaExceeded")
    assert len(set(re.findall(r"pi-worker-\d+", message))) == 1
    assert re.search(r"\b\d+ more\b", message)


async def test_a_refused_job_that_is_made_smaller_continues_at_once(private: Jobs) -> None:
    await policies.limit(private.client, private.namespace, pods="2")
    await private.submit(mpijob("pi", worker={"replicas": 3}))
    await _reported(private, "pi", "QuotaExceeded")
    await private.scale("pi", 1)
    await private.finish("pi", workers=1)


async def test_a_quota_on_jobs_holds_back_the_launcher_only(private: Jobs) -> None:
    quota = await policies.limit(private.client, private.namespace, count__jobs_batch="0")
    await private.submit(mpijob("pi"))
    message = await _reported(private, "pi", "QuotaExceeded")
    assert "pi-launcher" in message
    assert await private.has_workers("pi", 2)
    await private.client.delete(policies.QUOTAS, quota, private.namespace)
    await private.finish("pi", workers=2)


async def test_a_job_that_is_suspended_gives_back_its_workers_though_its_launcher_is_refused(
    private: Jobs,
) -> None:
    await policies.limit(private.client, private.namespace, count__jobs_batch="0")
    await private.submit(mpijob("pi"))
    await _reported(private, "pi", "QuotaExceeded")
    assert await private.has_workers("pi", 2)
    await private.suspend("pi")
    await until(lambda: private.has_workers("pi", 0))
    await private.becomes("pi", "Suspended")


@pytest.mark.parametrize(
    ("resource", "refused"),
    [
        pytest.param(PODS, "pi-worker-", id="workers"),
        pytest.param(JOBS, "pi-launcher", id="the launcher"),
    ],
)
async def test_a_policy_that_denies_is_reported_and_is_never_final(
    private: Jobs, resource: Resource, refused: str
) -> None:
    # A policy may answer as if the template were invalid. The policy may still change.
    why = "only on Sundays"
    async with policies.denied(private.client, private.namespace, resource, why, reason="Invalid"):
        await private.submit(mpijob("pi"))
        message = await _reported(private, "pi", "AdmissionDenied")
        assert refused in message
        assert message.endswith(f"denied request: {why}")
    await private.finish("pi", workers=2)


async def test_a_webhook_that_does_not_answer_is_reported(private: Jobs) -> None:
    async with policies.unreachable_webhook(private.client, private.namespace):
        await private.submit(mpijob("pi"))
        message = await _reported(private, "pi", "AdmissionDenied")
        assert 'failed calling webhook "down.example.com"' in message
    await private.finish("pi", workers=2)


async def test_a_quota_that_is_too_small_for_the_launcher_s_pod_is_hinted_at(
    private: Jobs,
) -> None:
    """The Job controller creates that pod, so the refusal is in the events of the Job only."""
    quota = await policies.limit(private.client, private.namespace, pods="2")
    await private.submit(mpijob("pi"))
    message = await _reported(private, "pi", "LauncherPodMissing")
    assert f"kubectl describe job pi-launcher -n {private.namespace}" in message
    await private.client.delete(policies.QUOTAS, quota, private.namespace)


async def test_a_status_that_is_refused_is_reported_and_costs_nothing(
    jobs: Jobs, running_operator: Operator
) -> None:
    await jobs.submit(mpijob("pi"))
    launcher = await jobs.start("pi", workers=2)
    async with policies.denied(
        jobs.client,
        jobs.namespace,
        MPIJOBS,
        "not today",
        operation="UPDATE",
        subresource="status",
        reason="Invalid",
    ):
        await jobs.succeed(launcher)
        [message] = await jobs.event_messages("pi", "StatusRefused")
        assert message.endswith("denied request: not today")
        note = {"metadata": {"annotations": {"seen": "yes"}}}
        await jobs.client.patch(MPIJOBS, "pi", note, jobs.namespace)
    await jobs.submit(mpijob("next"))
    await jobs.finish("next", workers=2)
    mark = 'rest_client_requests_total{code="422",resource="mpijobs.kubeflow.org/status"'
    assert await _count(running_operator, mark) < 50  # each of the few changes is tried once
    await jobs.client.patch(MPIJOBS, "pi", {"metadata": {"annotations": None}}, jobs.namespace)
    await jobs.becomes("pi", "Succeeded")


async def test_a_missing_priority_class_is_reported_until_it_is_there(shared: Jobs) -> None:
    spec = template(priorityClassName="urgent")
    await shared.submit(mpijob("hurried", worker={"template": spec}))
    message = await _reported(shared, "hurried", "Forbidden")
    assert message.endswith("no PriorityClass with name urgent was found")
    await shared.client.create(PRIORITY_CLASSES, {"metadata": {"name": "urgent"}, "value": 7})
    await shared.finish("hurried", workers=2)
    await shared.client.delete(PRIORITY_CLASSES, "urgent")


async def test_a_missing_service_account_is_reported_until_it_is_there(shared: Jobs) -> None:
    spec = template(serviceAccountName="trainer")
    await shared.submit(mpijob("nobody", worker={"template": spec}))
    message = await _reported(shared, "nobody", "Forbidden")
    assert 'serviceaccount "trainer" not found' in message
    account = {"metadata": {"name": "trainer", "namespace": shared.namespace}}
    await shared.client.create(SERVICE_ACCOUNTS, account)
    await shared.finish("nobody", workers=2)


async def test_what_is_refused_is_asked_for_less_and_less_often(
    jobs: Jobs, running_operator: Operator
) -> None:
    await policies.limit(jobs.client, jobs.namespace, pods="0")
    began = time.monotonic()
    await jobs.submit(mpijob("pi", worker={"replicas": 1}))
    # The delays are 2, 4, 8, … seconds, each cut by up to a half. We may notice a refusal late, so
    # only the time since the beginning counts.
    for count, seconds in ((2, 1), (3, 3), (4, 7)):
        assert await _time_of_refusal(running_operator, count) - began > seconds
    assert len(await jobs.event_messages("pi", "QuotaExceeded")) == 1


async def _time_of_refusal(process: Operator, count: int) -> float:
    async def were_refused() -> bool:
        return await _refused_pods(process) >= count

    await until(were_refused)
    return time.monotonic()


async def _refused_pods(process: Operator) -> float:
    mark = 'rest_client_requests_total{code="403",resource="pods",verb="create"'
    return await _count(process, mark)


async def _count(process: Operator, mark: str) -> float:
    _, metrics = await process.get("/metrics")
    found = [line for line in metrics.splitlines() if line.startswith(mark)]
    return sum(float(line.rpartition(" ")[2]) for line in found)
