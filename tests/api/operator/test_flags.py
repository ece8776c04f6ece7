"""Flags, from the command line to what pods see."""

from pathlib import Path

import pytest

from devcluster.control_plane import ControlPlane
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import CONFIG_MAPS, NAMESPACES
from tests.api.operator.conftest import StartOperator
from tests.support.jobs import Jobs
from tests.support.mpijobs import mpijob
from tests.support.operator import Operator, account, allow, started
from tests.support.waiting import until


async def test_the_cluster_domain_is_in_every_name_of_a_host(
    jobs: Jobs, start_operator: StartOperator
) -> None:
    await start_operator("--cluster-domain=example.org")
    await jobs.submit(mpijob("pi", runLauncherAsWorker=True))
    await jobs.start("pi", workers=2)
    domain = f"pi.{jobs.namespace}.svc.example.org"
    hosts = [f"{pod}.{domain}" for pod in ("pi-launcher", "pi-worker-0", "pi-worker-1")]
    data = (await jobs.client.get(CONFIG_MAPS, "pi-config", jobs.namespace))["data"]
    assert data["hostfile"].splitlines() == [f"{host} slots=1" for host in hosts]
    await until(lambda: _prints(jobs, [f"{host}:1" for host in hosts]))
    for worker in await jobs.pods("pi", "worker"):
        assert worker["spec"]["dnsConfig"]["searches"] == [domain]


async def _prints(jobs: Jobs, hosts: list[str]) -> bool:
    return await jobs.hosts("pi") == hosts


@pytest.fixture
async def three_namespaces(client: HttpClient) -> list[Jobs]:
    """Of which two will be looked after."""
    created = [
        await client.create(NAMESPACES, {"metadata": {"generateName": "test-"}}) for _ in range(3)
    ]
    return [Jobs(client, each["metadata"]["name"]) for each in created]


async def test_only_jobs_of_the_named_namespaces_are_reconciled(
    three_namespaces: list[Jobs], control_plane: ControlPlane, tmp_path: Path
) -> None:
    one, two, other = three_namespaces
    admin, home = control_plane.kubeconfig(), one.namespace
    kubeconfig = await account(one.client, admin, home, tmp_path, "namespaced.yaml")
    await allow(one.client, two.namespace, home)
    names = f"{one.namespace},{two.namespace}"
    flags = (f"--namespace={names}", f"--lock-namespace={home}")
    async with started(Operator(kubeconfig, tmp_path / "operator.log", *flags)) as process:
        await process.leading()
        for jobs in (other, one, two):
            await jobs.submit(mpijob("pi"))
        await one.finish("pi", workers=2)
        await two.finish("pi", workers=2)
        assert "status" not in await other.job("pi")
        assert await other.pods("pi") == []
    for jobs in three_namespaces:
        await jobs.client.delete(NAMESPACES, jobs.namespace)
