"""An MPIJob from creation to completion: the real controller on a local cluster."""

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial

import pytest

from mpi_operator.api import labels
from mpi_operator.api.decode import decode_job
from mpi_operator.api.field_errors import InvalidJob
from mpi_operator.build.settings import Settings
from mpi_operator.controller.cached_types import MPI_JOBS
from mpi_operator.controller.controller import Controller
from mpi_operator.kube import errors
from mpi_operator.kube.client import Selector
from mpi_operator.kube.errors import Cause
from mpi_operator.kube.resources import CONFIG_MAPS, EVENTS, JOBS, PODS, SECRETS, SERVICES, Manifest
from mpi_operator.local.apiserver import api_errors
from mpi_operator.local.apiserver.cluster import LocalCluster
from mpi_operator.local.apiserver.served_kinds import Kind, Scale
from mpi_operator.local.jobs.job_controller import JobController
from mpi_operator.local.jobs.job_decisions import PodFailureBackoff
from tests.support.mpijobs import mpijob
from tests.support.waiting import until
from tests.unit.local.scripted_node import ScriptedNode


def admitted(manifest: Manifest) -> Manifest:
    """An MPIJob that can run, or else Invalid: what the definition does on an API server."""
    try:
        decode_job(manifest)
    except InvalidJob as error:
        causes = [Cause("FieldValueInvalid", each.message, each.path.text) for each in error.errors]
        raise api_errors.invalid(MPI_JOBS, manifest["metadata"]["name"], causes) from error
    return manifest


MPI_JOB = Kind(
    MPI_JOBS,
    has_status=True,
    scale=Scale(
        ".spec.mpiReplicaSpecs.Worker.replicas",
        ".status.replicaStatuses.Worker.active",
        ".status.selector",
    ),
    admit=admitted,
)


def script(pod: Manifest) -> tuple[float, int] | None:
    """Workers run until they are deleted; the launcher succeeds at once."""
    return (0.05, 0) if labels.role_of(pod["metadata"]["labels"]) == "launcher" else None


@asynccontextmanager
async def a_world(script=script):
    cluster = LocalCluster([MPI_JOB])
    controller = Controller(cluster, cluster, Settings(is_local=True))
    node = ScriptedNode(cluster, script)
    jobs = JobController(cluster, backoff=PodFailureBackoff(initial=timedelta(seconds=0.1)))

    async def lead():
        await controller.synced()
        await controller.lead()

    tasks = [asyncio.create_task(each) for each in (node.run(), jobs.run(), controller.follow())]
    leading = asyncio.create_task(lead())
    try:
        yield cluster
    finally:
        controller.stop()
        await leading
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def condition(cluster, kind):
    job = await cluster.get(MPI_JOBS, "pi", "default")
    conditions = job.get("status", {}).get("conditions", ())
    return any(each["type"] == kind and each["status"] == "True" for each in conditions)


async def count(cluster, resource):
    return len((await cluster.list(resource)).items)


async def test_a_job_runs_succeeds_and_is_cleaned_up():
    async with a_world() as cluster:
        await cluster.create(MPI_JOBS, mpijob("pi", runPolicy={"cleanPodPolicy": "Running"}))
        await until(lambda: condition(cluster, "Succeeded"), 10)

        async def is_clean():
            return await count(cluster, PODS) == 1

        await until(is_clean, 10)
        [launcher] = (await cluster.list(PODS)).items
        assert launcher["status"]["phase"] == "Succeeded"
        status = (await cluster.get(MPI_JOBS, "pi", "default"))["status"]
        assert status["replicaStatuses"]["Launcher"] == {"active": 0, "failed": 0, "succeeded": 1}
        assert status["completionTime"]
        reasons = {event["reason"] for event in (await cluster.list(EVENTS)).items}
        assert {"MPIJobCreated", "MPIJobSucceeded"} <= reasons

        await cluster.delete(MPI_JOBS, "pi", "default")
        await until(lambda: is_empty(cluster, PODS), 10)
        for resource in (MPI_JOBS, JOBS, SERVICES, CONFIG_MAPS, SECRETS):
            assert await is_empty(cluster, resource), resource


async def is_empty(cluster, resource):
    return await count(cluster, resource) == 0


def in_v1(**policy):
    """A job as the conversion stores one of v1."""
    job = mpijob("pi", launcher={"restartPolicy": "Never"}, runPolicy={"backoffLimit": 6, **policy})
    job["metadata"]["annotations"] = {"mpi-operator.kubeflow.org/written-in": "v1"}
    return job


async def test_a_job_of_v1_succeeds_and_is_cleaned_up_with_its_launcher():
    async with a_world() as cluster:
        await cluster.create(MPI_JOBS, in_v1(cleanPodPolicy="All"))
        await until(lambda: condition(cluster, "Succeeded"), 10)
        await until(lambda: is_empty(cluster, PODS), 10)
        await until(lambda: is_empty(cluster, JOBS), 10)


async def test_a_job_of_v1_goes_with_its_ttl():
    async with a_world() as cluster:
        await cluster.create(MPI_JOBS, in_v1(ttlSecondsAfterFinished=0))
        for resource in (MPI_JOBS, PODS, JOBS, SERVICES, CONFIG_MAPS, SECRETS):
            await until(partial(is_empty, cluster, resource), 10)


async def test_a_job_of_v1_ends_with_a_worker_that_fails():
    def script(pod):
        return (0.2, 3) if pod["metadata"]["name"] == "pi-worker-1" else None

    async with a_world(script) as cluster:
        await cluster.create(MPI_JOBS, in_v1(cleanPodPolicy="All"))
        await until(lambda: condition(cluster, "Failed"), 10)
        await until(lambda: is_empty(cluster, PODS), 10)
        [*_, last] = (await cluster.get(MPI_JOBS, "pi", "default"))["status"]["conditions"]
        assert last["reason"] == "WorkerFailed"
        assert last["message"].startswith("Worker pi-worker-1 failed: ")


@pytest.mark.parametrize(
    ("code", "reason", "tries"), [(2, "PodFailurePolicy", 1), (137, "BackoffLimitExceeded", 3)]
)
async def test_the_exit_code_of_a_launcher_decides_where_it_is_asked_to(code, reason, tries):
    launchers = []

    def script(pod):
        if labels.role_of(pod["metadata"]["labels"]) != "launcher":
            return None
        launchers.append(pod)
        return (0.05, code)

    job = in_v1(backoffLimit=2)
    job["metadata"]["annotations"] |= {
        "mpi-operator.kubeflow.org/launcher-restart-policy": "ExitCode"
    }
    async with a_world(script) as cluster:
        await cluster.create(MPI_JOBS, job)
        await until(lambda: condition(cluster, "Failed"), 20)
        [*_, last] = (await cluster.get(MPI_JOBS, "pi", "default"))["status"]["conditions"]
        assert (last["reason"], len(launchers)) == (reason, tries)


async def test_a_job_is_scaled_suspended_and_resumed():
    async with a_world(lambda _: None) as cluster:
        await cluster.create(MPI_JOBS, mpijob("pi"))
        await until(lambda: condition(cluster, "Running"), 10)
        size = {"spec": {"replicas": 3}}
        await cluster.patch(MPI_JOBS, "pi", size, "default", subresource="scale")

        async def has(workers):
            running = await cluster.list(
                PODS,
                selector=Selector(
                    labels="training.kubeflow.org/job-role=worker", fields="status.phase=Running"
                ),
            )
            return len(running.items) == workers

        await until(lambda: has(3), 10)
        await cluster.patch(MPI_JOBS, "pi", {"spec": {"runPolicy": {"suspend": True}}}, "default")
        await until(lambda: is_empty(cluster, PODS), 10)
        await cluster.patch(MPI_JOBS, "pi", {"spec": {"runPolicy": {"suspend": False}}}, "default")
        await until(lambda: has(3), 10)
        await until(lambda: condition(cluster, "Running"), 10)


async def test_an_invalid_job_is_refused_on_creation():
    cluster = LocalCluster([MPI_JOB])
    with pytest.raises(errors.Invalid, match=r"spec\.mpiImplementation"):
        await cluster.create(MPI_JOBS, mpijob("pi", mpiImplementation="None"))
