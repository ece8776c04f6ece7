"""Jobs that are stored although the rules forbid them: they can still be changed, and deleted."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
import pytest_asyncio

from devcluster.control_plane import ControlPlane
from mpi_operator.kube import config, errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Manifest, Resource
from tests.support.mpijobs import changed, mpijob, without, without_rules
from tests.support.versions import RESOURCES, v1alpha1, workers_patch
from tests.support.waiting import until
from tests.support.webhook_replica import CONFIGURATION, CRD, VALIDATING, edit

HELD = "example.com/held"
LONG = "a" * 60

STORED = {
    "a name that starts with a digit": mpijob("0-stored"),
    "a name that is too long": mpijob(LONG),
    "zero workers": mpijob("zero-stored", worker={"replicas": 0}),
    "two launchers": mpijob("two-stored", launcher={"replicas": 2}),
    "no launcher": without(mpijob("none-stored"), "spec.mpiReplicaSpecs.Launcher"),
    "a worker without containers": mpijob(
        "bare-stored", worker={"template": {"spec": {"containers": []}}}
    ),
    "three GPUs": v1alpha1("three-stored", gpus=3),
    "units that do not divide": v1alpha1("units-stored", gpus=8, gpusPerNode=3),
    "two totals": v1alpha1("totals-stored", gpus=8, replicas=2),
    "a template without containers": v1alpha1(
        "empty-stored", replicas=1, template={"spec": {"containers": []}}
    ),
}
CHANGES: dict[str, list[Manifest]] = {
    "a label": [{"metadata": {"labels": {"a": "b"}}}, {"metadata": {"labels": {"a": None}}}],
    "a finalizer": [{"metadata": {"finalizers": each}} for each in ([], [HELD])],
    "suspension": [{"spec": {"runPolicy": {"suspend": each}}} for each in (True, False)],
    "the status": [{"status": {"startTime": f"20{year}-01-01T00:00:00Z"}} for year in (25, 26)],
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stored(versions_plane: ControlPlane, shared_namespace: str) -> str:
    """The namespace of jobs that were stored while there were no rules."""
    settings = config.load(kubeconfig=versions_plane.kubeconfig())
    async with HttpClient(settings) as client, _no_rules(client):
        for job in STORED.values():
            await until(partial(_is_stored, client, job, shared_namespace))
    await until(lambda: _has_rules(versions_plane))
    return shared_namespace


@asynccontextmanager
async def _no_rules(client: HttpClient) -> AsyncIterator[None]:
    """No rules in the definition, and no admission."""
    definition = await client.get(CUSTOM_RESOURCE_DEFINITIONS, CRD)
    admission = await client.get(VALIDATING, CONFIGURATION)
    versions, webhooks = definition["spec"]["versions"], admission["webhooks"]

    async def install(versions: list[Manifest], webhooks: list[Manifest]) -> None:
        await edit(
            client,
            CUSTOM_RESOURCE_DEFINITIONS,
            CRD,
            lambda crd: crd["spec"].update(versions=versions),
        )
        await edit(client, VALIDATING, CONFIGURATION, lambda each: each.update(webhooks=webhooks))

    await install(without_rules(versions), [])
    yield
    await install(versions, webhooks)


async def _is_stored(client: HttpClient, job: Manifest, namespace: str) -> bool:
    """Definitions take effect a little after they are stored."""
    job = changed(changed(job, "metadata.namespace", namespace), "metadata.finalizers", [HELD])
    try:
        await client.create(_resource(job), job)
    except errors.Invalid:
        return False
    return True


def _has_rules(control_plane: ControlPlane) -> bool:
    """Whether the rules of versions and of admission are in force again."""
    probes = [
        mpijob("0-probe"),
        v1alpha1("probe", gpus=8, replicas=1),
        v1alpha1("probe", gpus=8, gpusPerNode=3),
    ]
    return all(_is_refused(control_plane, probe) for probe in probes)


def _is_refused(control_plane: ControlPlane, job: Manifest) -> bool:
    path = f"{_resource(job).collection_path('default')}?dryRun=All"
    return control_plane.endpoint().request("POST", path, job).status == 422


def _resource(job: Manifest) -> Resource:
    return RESOURCES[job["apiVersion"].rpartition("/")[2]]


@pytest.mark.parametrize("version", RESOURCES)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("job", STORED)
async def test_what_is_wrong_with_a_stored_job_does_not_stop_other_changes(
    client: HttpClient, stored: str, job: str, change: str, version: str
):
    """The API server refuses none of the patches."""
    name = STORED[job]["metadata"]["name"]
    subresource = "status" if change == "the status" else ""
    for patch in CHANGES[change]:
        await client.patch(RESOURCES[version], name, patch, stored, subresource=subresource)


@pytest.mark.parametrize("version", RESOURCES)
async def test_a_job_with_a_long_name_cannot_grow(client: HttpClient, stored: str, version: str):
    with pytest.raises(errors.Invalid, match=r"metadata.name.*too long"):
        await client.patch(RESOURCES[version], LONG, workers_patch(version, 3), stored)
    await client.patch(RESOURCES[version], LONG, workers_patch(version, 2), stored)


@pytest.mark.parametrize("version", ["v2beta1", "v1alpha2"])
async def test_a_launcher_without_workers_has_to_run_ranks(
    client: HttpClient, stored: str, version: str
):
    name = f"alone-{version}"
    job = mpijob(name, stored, runLauncherAsWorker=True, worker={"replicas": 0})
    await client.create(RESOURCES["v2beta1"], job)
    patch = {"spec": {"runLauncherAsWorker": False}}
    with pytest.raises(errors.Invalid, match=r"at least 1 unless"):
        await client.patch(RESOURCES[version], name, patch, stored)
