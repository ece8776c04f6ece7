"""Jobs with more in one version than another can express, and than annotations can have."""

import pytest

from mpi_operator.kube import errors
from mpi_operator.kube.http import HttpClient
from tests.support.mpijobs import changed, mpijob
from tests.support.versions import RESOURCES, v1

V1, V1ALPHA1, V2BETA1 = (RESOURCES[each] for each in ("v1", "v1alpha1", "v2beta1"))
LARGE = "x" * 300_000


async def test_what_cannot_be_kept_is_refused_with_a_sentence(client: HttpClient, namespace: str):
    with pytest.raises(errors.Invalid, match=r"spec: .*at most 262144 bytes; remove unknown"):
        await client.create(V1, v1("huge", namespace, unknownField=LARGE))


async def test_conversion_has_the_sentence_too(client: HttpClient, namespace: str):
    """Admission does not see a job whose annotations grow and whose spec does not."""
    await client.create(V1, v1("growing", namespace, unknownField="x" * 200_000))
    patch = {"metadata": {"annotations": {"example.com/note": "y" * 100_000}}}
    with pytest.raises(errors.KubeError, match=r"growing: .*at most 262144 bytes"):
        await client.patch(V1, "growing", patch, namespace)
    await client.patch(V1, "growing", {"metadata": {"labels": {"a": "b"}}}, namespace)


async def test_a_job_that_a_version_cannot_show_in_full_is_readable_but_not_writable_there(
    client: HttpClient, namespace: str
):
    env = [{"name": "LARGE", "value": LARGE}]
    place = "spec.mpiReplicaSpecs.Launcher.template.spec.containers.0.env"
    await client.create(V2BETA1, changed(mpijob("wide", namespace), place, env))
    found = await client.get(V1ALPHA1, "wide", namespace)
    assert found["spec"]["replicas"] == 2
    with pytest.raises(errors.KubeError, match=r"cannot be changed in .* use v2beta1"):
        await client.patch(V1ALPHA1, "wide", {"metadata": {"labels": {"a": "b"}}}, namespace)
    for resource in (V1, V2BETA1):
        await client.patch(resource, "wide", {"spec": {"runPolicy": {"suspend": True}}}, namespace)
    kept = await client.get(V2BETA1, "wide", namespace)
    containers = kept["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    assert containers[0]["env"] == env
    await client.delete(V1, "wide", namespace)
