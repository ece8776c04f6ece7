"""Every API version with real pods, and what happens while the webhook's pods come and go."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import cycle, islice
from typing import Any

import pytest

from devcluster.cluster import Cluster, CommandFailed
from mpi_operator.kube import errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import NAMESPACES, Manifest, Resource
from tests.cluster.operator.installation import DEPLOYMENT, NAMESPACE, Installation
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import OPEN_MPI, one_rank_each
from tests.support.mpijobs import MPIJOBS
from tests.support.waiting import until

V1, V1ALPHA2, V1ALPHA1 = (
    Resource("kubeflow.org", version, "mpijobs", "MPIJob")
    for version in ("v1", "v1alpha2", "v1alpha1")
)
VERSIONS = (MPIJOBS, V1, V1ALPHA2, V1ALPHA1)
WRITES = 1_000
AT_ONCE = 8


async def test_a_job_of_each_old_version_runs_and_reads_as_its_own_operator_wrote_it(
    lab: Lab, cluster: Cluster
) -> None:
    jobs = {"first": V1ALPHA1, "second": V1ALPHA2, "third": V1}
    for name, version in jobs.items():
        await _create(lab.client, version, pi_in(version, name, lab.namespace))

    await lab.succeed_all(jobs)

    for name in jobs:
        assert await lab.ranks(name) == one_rank_each(name)
    read = {name: _kubectl_get(cluster, version, name, lab) for name, version in jobs.items()}
    for name, version in jobs.items():
        assert read[name]["apiVersion"] == version.api_version
        assert read[name]["spec"] == pi_in(version, name, lab.namespace)["spec"]
    assert read["first"]["status"]["launcherStatus"] == "Succeeded"
    for name in ("second", "third"):
        status = read[name]["status"]
        assert status["replicaStatuses"] == {"Launcher": {"succeeded": 1}, "Worker": {}}
        assert [each["type"] for each in status["conditions"]] == [
            "Created",
            "Running",
            "Succeeded",
        ]
        assert status.keys() - {"observedGeneration", "selector"} == {
            "completionTime",
            "conditions",
            "replicaStatuses",
            "startTime",
        }


async def test_units_that_do_not_divide_are_refused_in_the_terms_of_their_version(lab: Lab) -> None:
    job = pi_in(V1ALPHA1, "odd", lab.namespace)
    job["spec"] |= {"gpus": 16, "gpusPerNode": 5}
    del job["spec"]["replicas"]
    with pytest.raises(errors.KubeError, match=r"spec\.gpus"):
        await _create(lab.client, V1ALPHA1, job)


async def test_no_write_is_lost_or_halved_while_the_webhook_is_replaced(
    lab: Lab, installation: Installation, cluster: Cluster
) -> None:
    """Each of 1,000 writes in all versions is stored as it is, or refused with a sentence.

    An API server may store a job and then fail to convert it for the answer: so what was refused
    may be there all the same, but never in part.
    """
    async with _webhook_in_motion(installation, cluster):
        refused = await _write_many(lab)
    assert all(str(error) for error in refused.values())
    assert len(refused) < WRITES / 10, list(refused.values())[:3]

    accepted = {f"job-{number}" for number in range(WRITES)} - refused.keys()
    for version in VERSIONS:
        listed = (await lab.client.list(version, lab.namespace)).items
        specs = {job["metadata"]["name"]: job["spec"] for job in listed}
        assert accepted <= specs.keys()
        own = [name for name in specs if VERSIONS[int(name.removeprefix("job-")) % 4] == version]
        if version != MPIJOBS:  # where the server adds defaults
            for name in own:
                assert specs[name] == _unmanaged(version, name, lab.namespace)["spec"]
    await lab.client.delete_collection(MPIJOBS, lab.namespace)


async def test_what_waits_for_the_webhook_catches_up_when_it_is_back(
    installation: Installation, client: HttpClient, cluster: Cluster
) -> None:
    """Garbage collection and the end of a namespace read jobs in v1, the preferred version."""
    created = await client.create(NAMESPACES, {"metadata": {"generateName": "test-"}})
    namespace = created["metadata"]["name"]
    await _create(client, MPIJOBS, _unmanaged(MPIJOBS, "left", namespace))
    cluster.kubectl("scale", DEPLOYMENT, "-n", NAMESPACE, "--replicas=0")
    try:
        await until(lambda: asyncio.to_thread(_has_no_conversion, cluster, namespace), 60)
        # The hub needs no conversion, and admission does not stop it.
        await _create(client, MPIJOBS, _unmanaged(MPIJOBS, "late", namespace))
        await client.delete(NAMESPACES, namespace)
    finally:
        cluster.kubectl("scale", DEPLOYMENT, "-n", NAMESPACE, "--replicas=2")
        installation.wait()

    await until(lambda: _is_gone(client, namespace), 120)


def pi_in(version: Resource, name: str, namespace: str, **spec: Any) -> Manifest:
    """The job of the tests as people wrote it in an old version."""
    launcher = _container({"command": OPEN_MPI.command()})
    if version == V1ALPHA1:
        body: Manifest = {"replicas": 2, "template": _template(launcher)}
    else:
        body = {
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": _template(launcher)},
                "Worker": {"replicas": 2, "template": _template(_container({}))},
            }
        }
    return {
        "apiVersion": version.api_version,
        "kind": "MPIJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": body | spec,
    }


def _unmanaged(version: Resource, name: str, namespace: str) -> Manifest:
    """A job that our operator stores, converts and leaves alone: it costs no other objects."""
    return pi_in(version, name, namespace, runPolicy={"managedBy": "kueue.x-k8s.io/multikueue"})


def _container(fields: Manifest) -> Manifest:
    return {"name": "mpi", "image": OPEN_MPI.image, "imagePullPolicy": "Never", **fields}


def _template(container: Manifest) -> Manifest:
    return {"spec": {"containers": [container]}}


async def _create(client: HttpClient, version: Resource, job: Manifest) -> Manifest:
    return await client.create(version, job)


def _kubectl_get(cluster: Cluster, version: Resource, name: str, lab: Lab) -> Manifest:
    kind = f"mpijobs.{version.version}.kubeflow.org"
    read: Manifest = json.loads(
        cluster.kubectl("get", kind, name, "-n", lab.namespace, "-o", "json")
    )
    return read


@asynccontextmanager
async def _webhook_in_motion(installation: Installation, cluster: Cluster) -> AsyncIterator[None]:
    """Its processes are killed, and its pods replaced, for as long as the block runs."""

    async def move() -> None:
        for kills in cycle([True, False]):
            if kills:
                pod = installation.standby()
                await asyncio.to_thread(installation.kill, pod)
            else:
                await asyncio.to_thread(
                    cluster.kubectl, "rollout", "restart", DEPLOYMENT, "-n", NAMESPACE
                )
            await asyncio.to_thread(installation.wait)

    moving = asyncio.create_task(move())
    try:
        yield
    finally:
        moving.cancel()
        await asyncio.wait({moving})
        await asyncio.to_thread(installation.wait)


async def _write_many(lab: Lab) -> dict[str, errors.KubeError]:
    """Create the jobs; what was refused, and why."""
    limit = asyncio.Semaphore(AT_ONCE)
    refused: dict[str, errors.KubeError] = {}

    async def write(name: str, version: Resource) -> None:
        async with limit:
            try:
                await _create(lab.client, version, _unmanaged(version, name, lab.namespace))
            except errors.KubeError as error:
                refused[name] = error

    versions = islice(cycle(VERSIONS), WRITES)
    await asyncio.gather(*(write(f"job-{i}", each) for i, each in enumerate(versions)))
    return refused


def _has_no_conversion(cluster: Cluster, namespace: str) -> bool:
    """Whether the API server finds no webhook; pods answer until they have ended."""
    try:
        # Not with our client, which would try again for as long as this may take.
        cluster.kubectl("get", "mpijobs.v1.kubeflow.org", "left", "-n", namespace)
    except CommandFailed as error:
        return "conversion webhook" in str(error)
    return False


async def _is_gone(client: HttpClient, namespace: str) -> bool:
    try:
        await client.get(NAMESPACES, namespace)
    except errors.NotFound:
        return True
    return False
