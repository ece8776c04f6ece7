"""The operator as a process with its webhook, with the permissions that we ship and no others."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from devcluster.control_plane import ControlPlane
from devcluster.ports import free_port
from mpi_operator.kube import errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, SECRETS
from mpi_operator.operator.exit_codes import ExitCode
from tests.support import promql
from tests.support.mpijobs import MPIJOBS, mpijob, without
from tests.support.operator import Operator, account, operator, started
from tests.support.waiting import until
from tests.support.webhook_replica import CRD, MUTATING, V1, VALIDATING, configuration, crd

ROLES = ("namespaced.yaml", "exec-transport-namespaced.yaml", "webhooks.yaml")


@asynccontextmanager
async def running(
    admin: HttpClient, control_plane: ControlPlane, home: str, port: int, directory: Path
) -> AsyncIterator[Operator]:
    flags = ("--webhooks=on", f"--webhook-port={port}")
    async with operator(
        admin, control_plane.kubeconfig(), home, directory, *flags, roles=ROLES
    ) as process:
        yield process


@pytest.fixture
async def port(admin: HttpClient) -> int:
    """The port of the webhook, known to the API server."""
    port = free_port()
    url = f"https://localhost:{port}"
    await admin.create(CUSTOM_RESOURCE_DEFINITIONS, crd(url))
    for resource in (VALIDATING, MUTATING):
        await admin.create(resource, configuration(resource, url))
    await until(lambda: is_established(admin))
    return port


async def is_established(client: HttpClient) -> bool:
    found = await client.get(CUSTOM_RESOURCE_DEFINITIONS, CRD)
    conditions = found.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def v1_job(name: str, namespace: str):
    """A job as training-operator knows it, which v2beta1 expresses differently."""
    return mpijob(name, namespace, cleanPodPolicy="All") | {"apiVersion": "kubeflow.org/v1"}


async def test_a_job_of_an_old_version_is_stored_and_comes_back(
    admin, webhook_plane, home, port, tmp_path
):
    async with running(admin, webhook_plane, home, port, tmp_path) as process:
        await until(lambda: can_create(admin, v1_job("old", home)))
        found = await admin.get(V1, "old", home)
        assert found["spec"] == v1_job("old", home)["spec"]
        hub = await admin.get(MPIJOBS, "old", home)
        assert hub["spec"]["runPolicy"]["cleanPodPolicy"] == "All"
        _, metrics = await process.get("/metrics")
        assert 'mpi_operator_webhook_converted_objects_total{version="v2beta1"}' in metrics
        assert "mpi_operator_webhook_certificate_expiry_timestamp_seconds" in metrics
        # What alerts and dashboard are compared with is what a process serves.
        served = set(re.findall(r"^# TYPE (\S+)", metrics, re.MULTILINE))
        assert {re.sub("_(bucket|count|sum)$", "", each) for each in promql.exported()} <= served


async def can_create(client: HttpClient, job) -> bool:
    try:
        await client.create(V1, job)
    except errors.AlreadyExists:
        return True
    except errors.ApiError:
        return False
    return True


async def test_an_invalid_job_is_refused_with_a_sentence(
    admin, webhook_plane, home, port, tmp_path
):
    async with running(admin, webhook_plane, home, port, tmp_path):
        await until(lambda: can_create(admin, v1_job("good", home)))
        bad = without(v1_job("bad", home), "spec.mpiReplicaSpecs.Launcher")
        with pytest.raises(errors.ApiError, match="Launcher") as raised:
            await admin.create(V1, bad)
        assert raised.value.code == 422


async def test_a_corrupted_secret_is_replaced(admin, webhook_plane, home, port, tmp_path):
    name = "mpi-operator-webhook"
    await admin.create(SECRETS, {"metadata": {"name": name, "namespace": home}, "data": {"a": ""}})
    async with running(admin, webhook_plane, home, port, tmp_path) as process:
        await until(lambda: can_create(admin, v1_job("job", home)))
        messages = [each["message"] for each in process.records()]
    assert "The Secret of the webhook is corrupted, replacing it" in messages
    assert {"tls.crt", "tls.key"} <= set((await admin.get(SECRETS, name, home))["data"])


async def test_a_port_in_use_ends_it(admin, webhook_plane, home, port, tmp_path):
    async with running(admin, webhook_plane, home, port, tmp_path):
        second = Operator(
            webhook_plane.kubeconfig(),
            tmp_path / "second.log",
            f"--lock-namespace={home}",
            "--webhooks=on",
            f"--webhook-port={port}",
        )
        await second.start()
        assert await second.ended() == ExitCode.PORT_IN_USE
        assert second.records()[-1]["port"] == port


async def test_each_write_is_stored_or_refused_while_operators_are_killed(
    admin, webhook_plane, home, port, tmp_path
):
    """One webhook at a time, so there are moments without any."""
    outcomes: dict[str, str] = {}

    async def write(number: int) -> None:
        for count in range(1_000_000):
            name = f"job-{number}-{count}"
            try:
                await admin.create(V1, v1_job(name, home))
                outcomes[name] = ""
            except errors.ApiError as error:
                outcomes[name] = str(error)
            await asyncio.sleep(0.01)

    kubeconfig = await account(admin, webhook_plane.kubeconfig(), home, tmp_path, *ROLES)
    flags = (f"--namespace={home}", f"--lock-namespace={home}", f"--webhook-port={port}")
    for turn in range(3):
        # It converts before it leads: the lease of the one before lasts for seconds.
        process = Operator(kubeconfig, tmp_path / "operator.log", "--webhooks=on", *flags)
        async with started(process):
            await until(lambda: can_create(admin, v1_job("first", home)))
            wanted = len(outcomes) + 30
            writers = [asyncio.create_task(write(10 * turn + number)) for number in range(3)]
            await until(partial(has_at_least, outcomes, wanted))
            await process.kill()
            await until(lambda: any("connection refused" in each for each in outcomes.values()))
            for task in writers:
                task.cancel()
            await asyncio.wait(writers)

    process = Operator(kubeconfig, tmp_path / "operator.log", "--webhooks=on", *flags)
    async with started(process):
        await until(lambda: can_create(admin, v1_job("last", home)))
        stored = {each["metadata"]["name"]: each for each in (await admin.list(V1, home)).items}
    assert {name for name, error in outcomes.items() if not error} <= set(stored)
    assert all("webhook" in error for error in outcomes.values() if error)
    expected = v1_job("any", home)["spec"]
    assert all(each["spec"] == expected for each in stored.values()), "none is half"


def has_at_least(outcomes: dict[str, str], number: int) -> bool:
    return len(outcomes) >= number


async def test_without_permissions_for_the_webhook_jobs_of_v2beta1_continue(
    admin, webhook_plane, home, port, tmp_path
):
    for resource in (VALIDATING, MUTATING):
        await admin.delete(resource, "mpi-operator")
    flags = ("--webhooks=on", f"--webhook-port={port}")
    kubeconfig = webhook_plane.kubeconfig()
    async with operator(admin, kubeconfig, home, tmp_path, *flags) as process:
        await admin.create(MPIJOBS, mpijob("new", home))
        await until(lambda: has_conditions(admin, home))
        advice = [each["advice"] for each in process.records() if "advice" in each]
        assert any("deploy/rbac/" in each for each in advice)


async def has_conditions(client: HttpClient, home: str) -> bool:
    found = await client.get(MPIJOBS, "new", home)
    return bool(found.get("status", {}).get("conditions"))
