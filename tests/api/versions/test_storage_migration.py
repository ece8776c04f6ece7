"""`mpi-operator migrate-storage` on a real API server: it writes every job once, in one version."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from devcluster.control_plane import ControlPlane
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Manifest
from tests.support.mpijobs import mpijob
from tests.support.versions import RESOURCES
from tests.support.webhook_replica import CRD

pytestmark = pytest.mark.timeout(180)

NAMES = [f"stored-{index}" for index in range(5)]


class Migration:
    """The command, as an administrator runs it."""

    def __init__(self, kubeconfig: Path) -> None:
        self._command = ["mpi_operator.operator", "migrate-storage", f"--kubeconfig={kubeconfig}"]

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        command = [sys.executable, "-m", *self._command, *arguments]
        return await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)

    async def __call__(self, *arguments: str) -> tuple[int | None, str, str]:
        """The exit code, the output and the errors."""
        process = await self.start(*arguments)
        output, error = await process.communicate()
        return process.returncode, output.decode(), error.decode()


@pytest.fixture
def migrate(versions_plane: ControlPlane, webhook: None) -> Migration:
    return Migration(versions_plane.kubeconfig())


@pytest.fixture
async def jobs(client: HttpClient, namespace: str, webhook: None) -> AsyncIterator[str]:
    """The namespace of some jobs."""
    for name in NAMES:
        await client.create(RESOURCES["v2beta1"], mpijob(name, namespace, slotsPerWorker=2))
    yield namespace
    await client.delete_collection(RESOURCES["v2beta1"], namespace)


async def stored(client: HttpClient, namespace: str) -> dict[str, Manifest]:
    listing = await client.list(RESOURCES["v2beta1"], namespace)
    return {each["metadata"]["name"]: each for each in listing.items}


async def recorded(client: HttpClient) -> list[str]:
    crd = await client.get(CUSTOM_RESOURCE_DEFINITIONS, CRD)
    versions: list[str] = crd["status"]["storedVersions"]
    return versions


def versions_of(jobs: dict[str, Manifest]) -> dict[str, str]:
    return {name: job["metadata"]["resourceVersion"] for name, job in jobs.items()}


async def test_there_and_back_again(client, jobs, migrate):
    before = await stored(client, jobs)

    code, output, error = await migrate("--to=v1", "--page-size=2")
    assert (code, error) == (0, "")
    assert "Making v1 the storage version" in output
    assert await recorded(client) == ["v1"]
    there = await stored(client, jobs)
    assert all(versions_of(there)[name] != versions_of(before)[name] for name in NAMES)

    code, output, error = await migrate()
    assert (code, error) == (0, "")
    assert await recorded(client) == ["v2beta1"]
    back = await stored(client, jobs)
    assert {name: job["spec"] for name, job in back.items()} == {
        name: job["spec"] for name, job in before.items()
    }

    code, output, error = await migrate()
    assert (code, output.count("\n")) == (0, 1)
    assert "already" in output
    assert versions_of(await stored(client, jobs)) == versions_of(back)


async def test_an_interrupted_migration_continues(client, jobs, migrate):
    process = await migrate.start("--to=v1", "--page-size=1")
    assert process.stdout is not None
    while not (await process.stdout.readline()).startswith(b"Wrote 1 "):
        assert process.returncode is None
    process.send_signal(signal.SIGINT)
    _, error = await process.communicate()
    assert process.returncode == 130
    assert b"run the command again to continue" in error
    assert await recorded(client) == ["v2beta1", "v1"], "nothing is claimed that is not done"

    code, *_ = await migrate("--to=v2beta1")
    assert code == 0
    assert await recorded(client) == ["v2beta1"]
    assert set(await stored(client, jobs)) >= set(NAMES)


async def test_a_version_that_is_not_served_is_refused(client, migrate):
    code, _, error = await migrate("--to=v9")
    assert code == 3
    assert "does not serve v9" in error
