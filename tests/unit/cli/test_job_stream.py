"""The last lines of a job that has ended, and which logs never end."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from mpi_operator.api import labels
from mpi_operator.build.ownership import MPI_JOBS
from mpi_operator.cli.job_output.job_stream import JobStream, Line, watch_job
from mpi_operator.kube.client import LogOptions
from mpi_operator.kube.resources import PODS, Manifest
from mpi_operator.local.apiserver.cluster import LocalCluster
from mpi_operator.local.apiserver.served_kinds import Kind

RUNNING = {
    "phase": "Running",
    "containerStatuses": [{"name": "main", "state": {"running": {}}, "restartCount": 0}],
}
LONG = 600.0  # for last lines: a test that waits for them times out


class Printer:
    """Pods that print a line, and a last one when they are told to end."""

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
    """A cluster with a job whose worker runs."""
    cluster = LocalCluster([Kind(MPI_JOBS, has_status=True)], logs=printer.log)
    await cluster.create(MPI_JOBS, job(policy))
    await cluster.create(PODS, worker())
    change = {"status": RUNNING}
    await cluster.patch(PODS, "pi-worker-0", change, "default", subresource="status")
    return cluster


async def lines(stream: JobStream, count: int) -> list[str]:
    """The next lines, without other updates."""
    found: list[str] = []
    while len(found) < count:
        update = await stream.next()
        if isinstance(update, Line):
            found.append(update.text)
    return found


@pytest.mark.timeout(20)
async def test_a_worker_that_keeps_running_is_not_waited_for():
    cluster = await cluster_with("None", Printer())
    async with watch_job(cluster, "pi", "default") as stream:
        assert await lines(stream, 1) == ["hello"]
        assert [each async for each in stream.rest(LONG) if isinstance(each, Line)] == []


@pytest.mark.timeout(20)
async def test_the_last_lines_of_a_worker_that_ends_are_read():
    printer = Printer()
    cluster = await cluster_with("Running", printer)
    async with watch_job(cluster, "pi", "default") as stream:
        assert await lines(stream, 1) == ["hello"]
        asyncio.get_running_loop().call_later(0.2, printer.end.set)
        last = [each.text async for each in stream.rest(LONG) if isinstance(each, Line)]
    assert last == ["bye"]


class Chatterbox(Printer):
    """Prints many lines, and counts those that were wanted so far."""

    def __init__(self, count: int, seconds: float) -> None:
        super().__init__()
        self.printed = 0
        self._count = count
        self._seconds = seconds

    async def log(
        self, name: str, namespace: str, options: LogOptions
    ) -> AsyncGenerator[bytes, None]:
        for number in range(self._count):
            yield str(number).encode()
            self.printed += 1
            await asyncio.sleep(self._seconds)


@pytest.mark.timeout(60)
async def test_last_lines_may_take_long_as_long_as_they_come():
    cluster = await cluster_with("Running", Chatterbox(count=60, seconds=0.15))
    async with watch_job(cluster, "pi", "default") as stream:
        assert await lines(stream, 1) == ["0"]
        last = [each.text async for each in stream.rest(6) if isinstance(each, Line)]
    assert last == [str(number) for number in range(1, 60)]


@pytest.mark.timeout(60)
async def test_a_log_is_not_read_much_sooner_than_it_is_shown():
    printer = Chatterbox(count=10_000, seconds=0)
    cluster = await cluster_with("Running", printer)
    async with watch_job(cluster, "pi", "default") as stream:
        assert await lines(stream, 1) == ["0"]
        for _ in range(20_000):  # turns of the event loop in which nothing is shown
            await asyncio.sleep(0)
        assert printer.printed < 2000
        shown = [each.text async for each in stream.rest() if isinstance(each, Line)]
    assert shown == [str(number) for number in range(1, 10_000)]
