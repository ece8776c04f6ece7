"""What is told of a job that has ended, and for whom nobody waits."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from mpi_operator.api import labels
from mpi_operator.build.ownership import MPI_JOBS
from mpi_operator.cli.job_stream import Line, Story, story
from mpi_operator.kube.client import LogOptions
from mpi_operator.kube.resources import PODS, Manifest
from mpi_operator.local.apiserver.cluster import LocalCluster
from mpi_operator.local.apiserver.served_kinds import Kind

RUNNING = {
    "phase": "Running",
    "containerStatuses": [{"name": "main", "state": {"running": {}}, "restartCount": 0}],
}
LONG = 600.0  # for last lines; nobody who waits that long passes


class Printer:
    """Pods that say hello, and then nothing until they are to end."""

    def __init__(self) -> None:
        self.end = asyncio.Event()

    async def log(
        self, name: str, namespace: str, options: LogOptions
    ) -> AsyncGenerator[bytes, None]:
        yield b"hello"
        await self.end.wait()
        yield b"bye"


def job(policy: str) -> Manifest:
    template = {"spec": {"containers": [{"name": "main", "image": "none"}]}}
    roles = {"Launcher": {"template": template}, "Worker": {"replicas": 1, "template": template}}
    return {
        "apiVersion": MPI_JOBS.api_version,
        "kind": MPI_JOBS.kind,
        "metadata": {"name": "pi", "namespace": "default"},
        "spec": {"runPolicy": {"cleanPodPolicy": policy}, "mpiReplicaSpecs": roles},
    }


def worker() -> Manifest:
    marks = {labels.JOB_NAME: "pi", labels.JOB_ROLE: labels.Role.WORKER.value}
    return {
        "metadata": {"name": "pi-worker-0", "namespace": "default", "labels": marks},
        "spec": {"containers": [{"name": "main"}]},
    }


async def cluster_with(policy: str, printer: Printer) -> LocalCluster:
    """One in which the worker of a job runs."""
    cluster = LocalCluster([Kind(MPI_JOBS, has_status=True)], logs=printer.log)
    await cluster.create(MPI_JOBS, job(policy))
    await cluster.create(PODS, worker())
    change = {"status": RUNNING}
    await cluster.patch(PODS, "pi-worker-0", change, "default", subresource="status")
    return cluster


async def lines(told: Story, count: int) -> list[str]:
    """The next lines that are told, whatever else is."""
    found: list[str] = []
    while len(found) < count:
        happening = await told.next()
        if isinstance(happening, Line):
            found.append(happening.text)
    return found


@pytest.mark.timeout(20)
async def test_a_worker_that_stays_is_not_waited_for():
    cluster = await cluster_with("None", Printer())
    async with story(cluster, "pi", "default") as told:
        assert await lines(told, 1) == ["hello"]
        assert [each async for each in told.rest(LONG) if isinstance(each, Line)] == []


@pytest.mark.timeout(20)
async def test_the_last_lines_are_heard_of_a_worker_that_ends():
    printer = Printer()
    cluster = await cluster_with("Running", printer)
    async with story(cluster, "pi", "default") as told:
        assert await lines(told, 1) == ["hello"]
        asyncio.get_running_loop().call_later(0.2, printer.end.set)
        said = [each.text async for each in told.rest(LONG) if isinstance(each, Line)]
    assert said == ["bye"]
