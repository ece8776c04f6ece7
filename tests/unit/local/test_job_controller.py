"""Jobs from creation to completion, in virtual time."""

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from mpi_operator.kube import errors
from mpi_operator.kube.client import DeleteOptions
from mpi_operator.kube.resources import JOBS, PODS
from mpi_operator.local.jobs.job_controller import JobController
from mpi_operator.local.jobs.job_decisions import PodFailureBackoff
from mpi_operator.local.jobs.job_objects import TRACKING_FINALIZER
from tests.unit.local.clusters import a_cluster, named, virtual_now
from tests.unit.local.jobs import job_manifest, stamp
from tests.unit.local.scripted_node import ScriptedNode

pytestmark = pytest.mark.looptime

QUICK = PodFailureBackoff(initial=timedelta(seconds=1), maximum=timedelta(seconds=8))


def in_turn(*plans):
    """The first pod runs by the first plan, and so on; the last one is for all that follow."""
    remaining = list(plans)

    def script(_pod):
        return remaining.pop(0) if len(remaining) > 1 else remaining[0]

    return script


@asynccontextmanager
async def running(*tasks):
    running = [asyncio.create_task(task) for task in tasks]
    try:
        yield
        for task in running:
            assert not task.done(), task.exception()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


@asynccontextmanager
async def a_world(*plans, backoff=QUICK):
    """A cluster with a node and a Job controller."""
    cluster = a_cluster(clock=virtual_now)
    node = ScriptedNode(cluster, in_turn(*plans))
    controller = JobController(cluster, backoff=backoff, clock=virtual_now)
    async with running(node.run(), controller.run()):
        yield cluster


async def pods_of(cluster):
    listed = await cluster.list(PODS)
    return sorted(listed.items, key=lambda pod: pod["metadata"]["creationTimestamp"])


async def status_of(cluster, name="j"):
    return (await cluster.get(JOBS, name, "here")).get("status", {})


def true_conditions(status):
    return {each["type"]: each for each in status.get("conditions", ()) if each["status"] == "True"}


async def test_a_job_runs_its_pod_and_completes():
    async with a_world((5, 0)) as cluster:
        job = await cluster.create(JOBS, job_manifest())
        await asyncio.sleep(1)
        [pod] = await pods_of(cluster)
        assert await status_of(cluster) == {
            "startTime": stamp(0),
            "active": 1,
            "ready": 1,
            "uncountedTerminatedPods": {},
        }
        await asyncio.sleep(9)
        status = await status_of(cluster)
        assert (status["succeeded"], status["completionTime"]) == (1, stamp(5))
        assert "active" not in status
        assert set(true_conditions(status)) == {"SuccessCriteriaMet", "Complete"}
        [owner] = pod["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("Job", job["metadata"]["uid"])
        labels = pod["metadata"]["labels"]
        assert labels["batch.kubernetes.io/controller-uid"] == job["metadata"]["uid"]
        assert labels["job-name"] == labels["batch.kubernetes.io/job-name"] == "j"
        assert pod["metadata"]["name"].startswith("j-")
        assert len(pod["metadata"]["name"]) == len("j-12345")


async def test_the_backoff_doubles_with_each_failure():
    async with a_world((2, 1)) as cluster:
        await cluster.create(JOBS, job_manifest(backoffLimit=3))
        await asyncio.sleep(60)
        pods = await pods_of(cluster)
        status = await status_of(cluster)
        begun = [pod["metadata"]["creationTimestamp"] for pod in pods]
        # Each runs for 2 s; the waits are 1, 2 and 4 s.
        assert begun == [stamp(0), stamp(3), stamp(7), stamp(13)]
        assert status["failed"] == 4
        assert true_conditions(status)["Failed"]["reason"] == "BackoffLimitExceeded"
        assert all("finalizers" not in pod["metadata"] for pod in pods)


async def test_a_job_that_succeeds_at_the_second_attempt_completes():
    async with a_world((2, 1), (2, 0)) as cluster:
        await cluster.create(JOBS, job_manifest())
        await asyncio.sleep(30)
        status = await status_of(cluster)
        assert (status["failed"], status["succeeded"]) == (1, 1)
        assert "Complete" in true_conditions(status)


async def test_the_default_backoff_starts_with_10s():
    async with a_world((1, 1), None, backoff=PodFailureBackoff()) as cluster:
        await cluster.create(JOBS, job_manifest())
        await asyncio.sleep(60)
        assert [pod["metadata"]["creationTimestamp"] for pod in await pods_of(cluster)] == [
            stamp(0),
            stamp(11),
        ]


async def test_a_deadline_ends_the_pod_and_then_the_job():
    async with a_world(None) as cluster:
        await cluster.create(JOBS, job_manifest(activeDeadlineSeconds=10))
        await asyncio.sleep(10.5)
        assert set(true_conditions(await status_of(cluster))) == {"FailureTarget"}
        await asyncio.sleep(10)
        status = await status_of(cluster)
        assert await pods_of(cluster) == []
        assert true_conditions(status)["Failed"]["reason"] == "DeadlineExceeded"
        assert status["failed"] == 1


async def test_a_resumed_job_gets_a_new_pod_and_a_new_deadline():
    async with a_world(None, (8, 0)) as cluster:
        await cluster.create(JOBS, job_manifest(activeDeadlineSeconds=10))
        await asyncio.sleep(5)
        await cluster.patch(JOBS, "j", {"spec": {"suspend": True}}, "here")
        await asyncio.sleep(50)
        assert await pods_of(cluster) == []
        status = await status_of(cluster)
        assert set(true_conditions(status)) == {"Suspended"}
        assert not {"startTime", "active", "failed", "terminating"} & set(status)
        await cluster.patch(JOBS, "j", {"spec": {"suspend": False}}, "here")
        await asyncio.sleep(20)
        status = await status_of(cluster)
        assert status["startTime"] == stamp(55)
        assert "Complete" in true_conditions(status)
        assert "failed" not in status


async def test_a_job_created_suspended_has_no_pod():
    async with a_world((1, 0)) as cluster:
        await cluster.create(JOBS, job_manifest(suspend=True))
        await asyncio.sleep(10)
        assert await pods_of(cluster) == []
        assert "Suspended" in true_conditions(await status_of(cluster))


async def test_resuming_at_once_neither_fails_the_job_nor_runs_two_pods():
    async with a_world(None, (3, 0)) as cluster:
        await cluster.create(JOBS, job_manifest(backoffLimit=0))
        await asyncio.sleep(5)
        await cluster.patch(JOBS, "j", {"spec": {"suspend": True}}, "here")
        while not all(map(is_terminating, await pods_of(cluster))):
            await asyncio.sleep(0)
        await cluster.patch(JOBS, "j", {"spec": {"suspend": False}}, "here")
        await asyncio.sleep(0.5)
        assert len(await pods_of(cluster)) == 1, "the old one is still terminating"
        await asyncio.sleep(20)
        assert "Complete" in true_conditions(await status_of(cluster))


def is_terminating(pod):
    return "deletionTimestamp" in pod["metadata"]


async def test_a_deleted_pod_has_failed_and_is_replaced_when_it_has_terminated():
    async with a_world(None) as cluster:
        await cluster.create(JOBS, job_manifest())
        await asyncio.sleep(5)
        [pod] = await pods_of(cluster)
        await cluster.delete(PODS, pod["metadata"]["name"], "here")
        await asyncio.sleep(10)
        [other] = await pods_of(cluster)
        assert other["metadata"]["uid"] != pod["metadata"]["uid"]
        assert (await status_of(cluster))["failed"] == 1


async def test_a_force_deleted_pod_is_counted():
    async with a_world(None) as cluster:
        await cluster.create(JOBS, job_manifest(backoffLimit=0))
        await asyncio.sleep(5)
        [pod] = await pods_of(cluster)
        await cluster.delete(
            PODS, pod["metadata"]["name"], "here", DeleteOptions(grace_period_seconds=0)
        )
        await asyncio.sleep(10)
        assert await pods_of(cluster) == []
        assert "Failed" in true_conditions(await status_of(cluster))


async def test_a_finished_job_is_deleted_with_its_pods_after_its_ttl():
    async with a_world((1, 0)) as cluster:
        await cluster.create(JOBS, job_manifest(ttlSecondsAfterFinished=30))
        await asyncio.sleep(30.5)
        assert "Complete" in true_conditions(await status_of(cluster))
        await asyncio.sleep(2)
        with pytest.raises(errors.NotFound):
            await cluster.get(JOBS, "j", "here")
        assert await pods_of(cluster) == []


async def test_a_deleted_job_takes_its_running_pod_with_it():
    async with a_world(None) as cluster:
        await cluster.create(JOBS, job_manifest())
        await asyncio.sleep(5)
        await cluster.delete(JOBS, "j", "here")
        await asyncio.sleep(5)
        assert await pods_of(cluster) == []


async def test_a_job_of_the_same_name_is_another_one():
    async with a_world(None, (1, 0)) as cluster:
        await cluster.create(JOBS, job_manifest())
        await asyncio.sleep(5)
        await cluster.delete(JOBS, "j", "here")
        await cluster.create(JOBS, job_manifest())
        await asyncio.sleep(10)
        status = await status_of(cluster)
        assert "Complete" in true_conditions(status)
        assert "failed" not in status


async def test_container_restarts_count_towards_the_backoff_limit():
    async with a_world(None) as cluster:
        await cluster.create(JOBS, job_manifest(backoffLimit=2, restart_policy="OnFailure"))
        await asyncio.sleep(5)
        [pod] = await pods_of(cluster)
        again = {"status": {"containerStatuses": [{"name": "main", "restartCount": 2}]}}
        await cluster.patch(PODS, pod["metadata"]["name"], again, "here", subresource="status")
        await asyncio.sleep(10)
        status = await status_of(cluster)
        assert true_conditions(status)["Failed"]["reason"] == "BackoffLimitExceeded"


async def test_pods_without_the_owner_reference_are_left_alone():
    async with a_world(None) as cluster:
        stranger = named(
            "j-stranger", labels={"job-name": "j"}, finalizers=[TRACKING_FINALIZER], spec={}
        )
        await cluster.create(PODS, stranger)
        await cluster.create(JOBS, job_manifest())
        await asyncio.sleep(5)
        stored = await cluster.get(PODS, "j-stranger", "here")
        assert stored["metadata"]["finalizers"] == [TRACKING_FINALIZER]
        assert len(await pods_of(cluster)) == 2


async def test_a_job_of_another_manager_is_left_alone():
    async with a_world(None) as cluster:
        await cluster.create(JOBS, job_manifest(managedBy="example.com/other"))
        await asyncio.sleep(5)
        assert await pods_of(cluster) == []


async def test_a_job_in_a_steady_state_is_not_written():
    async with a_world(None) as cluster:
        await cluster.create(JOBS, job_manifest(activeDeadlineSeconds=10_000))
        await asyncio.sleep(5)
        before = (await cluster.list(JOBS)).resource_version
        await asyncio.sleep(3000)
        assert (await cluster.list(JOBS)).resource_version == before
