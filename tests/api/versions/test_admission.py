"""Admission on a real API server: warnings, and the version that a job was written in."""

import json

import pytest

from mpi_operator.api.annotations import INIT_TIMEOUT
from mpi_operator.kube.http import HttpClient
from tests.support.kubectl import Kubectl
from tests.support.mpijobs import changed, mpijob
from tests.support.versions import RESOURCES, WRITTEN_IN, v1

ROLES = "spec.mpiReplicaSpecs"
V1, V2BETA1 = RESOURCES["v1"], RESOURCES["v2beta1"]


async def test_people_see_warnings(client: HttpClient, namespace: str, kubectl: Kubectl):
    job = v1("warned", namespace, cleanPodPolicy="All", slotsPerWorkr=2)
    written = kubectl("apply", "-f", "-", stdin=json.dumps(job))
    assert written.code == 0
    assert "Warning: spec.cleanPodPolicy: deprecated; use spec.runPolicy" in written.errors
    assert "Warning: spec.slotsPerWorkr: unknown field, ignored; did you mean" in written.errors


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        pytest.param(
            f"{ROLES}.Worker.template.spec.restartPolicy",
            "Always",
            f"{ROLES}[Worker].template.spec.restartPolicy",
            id="a restart policy in a template",
        ),
        pytest.param(
            f"{ROLES}.Launcher.template.metadata",
            {"name": "mine"},
            f"{ROLES}[Launcher].template.metadata.name",
            id="a name in a template",
        ),
        pytest.param(
            f"{ROLES}.Driver", {"replicas": 1}, f"{ROLES}[Driver]", id="a role that does not exist"
        ),
        pytest.param("spec.slotsPerWorker", 0, "spec.slotsPerWorker", id="no slots"),
        pytest.param(
            "metadata.annotations",
            {INIT_TIMEOUT: "soon"},
            f"metadata.annotations[{INIT_TIMEOUT}]",
            id="a setting that is no duration",
        ),
    ],
)
async def test_every_warning_about_v2beta1_passes_the_match_condition(
    client: HttpClient, namespace: str, kubectl: Kubectl, path: str, value: object, field: str
):
    """A plain job is created without a call of the webhook, so each warning needs its reason."""
    job = changed(mpijob("surprising", namespace), path, value)
    written = kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(job))
    assert written.code == 0
    assert f"Warning: {field}: " in written.errors


async def test_a_job_keeps_the_version_that_it_was_written_in(client: HttpClient, namespace: str):
    await client.create(V1, v1("kept", namespace))
    for patch in (
        {WRITTEN_IN: None},
        {WRITTEN_IN: "v2beta1"},
        {WRITTEN_IN: "v1alpha1", "a": "b"},
    ):
        stored = await client.patch(
            V2BETA1, "kept", {"metadata": {"annotations": patch}}, namespace
        )
        assert stored["metadata"]["annotations"][WRITTEN_IN] == "v1"
    found = await client.get(V1, "kept", namespace)
    assert WRITTEN_IN not in found["metadata"]["annotations"]


async def test_replacing_a_job_without_annotations_keeps_it_too(client: HttpClient, namespace: str):
    await client.create(V1, v1("replaced", namespace))
    found = await client.get(V2BETA1, "replaced", namespace)
    await client.replace(V2BETA1, changed(found, "metadata.annotations", {}))
    found = await client.get(V2BETA1, "replaced", namespace)
    assert found["metadata"]["annotations"][WRITTEN_IN] == "v1"


async def test_its_own_version_may_replace_a_job(client: HttpClient, namespace: str):
    job = v1("own", namespace)
    stored = await client.create(V1, job)
    version = stored["metadata"]["resourceVersion"]
    await client.replace(V1, changed(job, "metadata.resourceVersion", version))
    found = await client.get(V2BETA1, "own", namespace)
    assert found["metadata"]["annotations"][WRITTEN_IN] == "v1"


async def test_the_version_of_a_copy_is_that_of_its_original(client: HttpClient, namespace: str):
    job = changed(v1("copy", namespace), "metadata.annotations", {WRITTEN_IN: "v1"})
    await client.create(V2BETA1, job | {"apiVersion": "kubeflow.org/v2beta1"})
    found = await client.get(V1, "copy", namespace)
    assert WRITTEN_IN not in found["metadata"].get("annotations", {})
