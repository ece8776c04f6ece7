"""An operator for all namespaces, with the permissions of one file and no others."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from devcluster.control_plane import ControlPlane
from mpi_operator.kube import config
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import NAMESPACES
from tests.support import mpijobs
from tests.support.jobs import Jobs
from tests.support.mpijobs import mpijob
from tests.support.operator import HOME, Operator, account, started
from tests.support.waiting import until


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def cluster_operator(
    spare_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Operator]:
    """As the shipped manifests are meant: in the namespace that they name."""
    admin, directory = spare_control_plane.kubeconfig(), tmp_path_factory.mktemp("cluster")
    async with HttpClient(config.load(kubeconfig=admin)) as client:
        await mpijobs.install(client)
        kubeconfig = await account(client, admin, HOME, directory, "cluster.yaml")
        async with started(Operator(kubeconfig, directory / "operator.log")) as process:
            await process.leading()
            yield process


async def test_jobs_of_all_namespaces_are_reconciled_also_of_new_ones(
    spare_jobs: Jobs,
) -> None:
    created = await spare_jobs.client.create(
        NAMESPACES, {"metadata": {"generateName": "test-new-"}}
    )
    new = Jobs(spare_jobs.client, created["metadata"]["name"])
    for jobs in (spare_jobs, new):
        await jobs.submit(mpijob("pi", runPolicy={"cleanPodPolicy": "All"}))
    for jobs in (spare_jobs, new):
        await jobs.finish("pi", workers=2)
        await until(lambda jobs=jobs: jobs.has_workers("pi", 0))  # type: ignore[misc]
    await spare_jobs.client.delete(NAMESPACES, new.namespace)
