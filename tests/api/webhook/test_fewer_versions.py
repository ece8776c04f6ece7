"""Administrators who serve fewer versions, and what becomes of jobs that are there already."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from devcluster.control_plane import ControlPlane
from devcluster.ports import free_port
from mpi_operator.kube import errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Manifest
from mpi_operator.operator.options import Options
from mpi_operator.operator.webhook_thread import decisions
from tests.support.kubectl import Kubectl
from tests.support.mpijobs import MPIJOBS, mpijob
from tests.support.waiting import until
from tests.support.webhook_replica import CRD, V1, Replica, crd, edit

ROOT = Path(__file__).parents[3]
V2BETA1_ONLY = str(ROOT / "deploy/v2beta1-only")
GUIDE = ROOT / "docs/how-to/run-the-operator.md"
WRITTEN_IN = "mpi-operator.kubeflow.org/written-in"


@pytest.fixture
def kubectl(webhook_plane: ControlPlane, tmp_path: Path) -> Kubectl:
    return Kubectl(webhook_plane.kubeconfig(), tmp_path)


@pytest.fixture
async def replica(webhook_plane: ControlPlane, home: str) -> AsyncIterator[Replica]:
    replica = Replica(webhook_plane.kubeconfig(), home, free_port(), decisions=decisions(Options()))
    async with replica.running():
        yield replica


async def install(kubectl: Kubectl, client: HttpClient, job: Manifest, url: str) -> None:
    """Apply the CRD with all versions, and wait until a v1 job is there."""
    kubectl_ok(kubectl, "apply", "-f", "-", stdin=json.dumps(crd(url)))
    await until(lambda: is_stored(client, job))


def kubectl_ok(kubectl: Kubectl, *arguments: str, stdin: str = "") -> str:
    done = kubectl(*arguments, stdin=stdin)
    assert done.code == 0, done.errors
    return done.output


async def is_stored(client: HttpClient, job: Manifest) -> bool:
    try:
        await client.create(V1, job)
    except errors.AlreadyExists:
        return True
    except errors.ApiError:
        return False
    return True


async def spec_in_v1(client: HttpClient, namespace: str) -> object:
    """The spec of the job in v1; nothing while that is not served."""
    try:
        return (await client.get(V1, "old", namespace))["spec"]
    except errors.ApiError:
        return None


@pytest.mark.parametrize("command", ["apply", "replace"])
async def test_a_job_of_v1_survives_a_time_with_v2beta1_only(
    admin, home, replica, kubectl, command
):
    job = mpijob("old", home, cleanPodPolicy="All") | {"apiVersion": "kubeflow.org/v1"}
    await install(kubectl, admin, job, replica.url)
    before = (await admin.get(MPIJOBS, "old", home))["spec"]

    kubectl_ok(kubectl, command, "-f", V2BETA1_ONLY)
    await until(lambda: is_gone(admin, home))
    stored = await admin.get(MPIJOBS, "old", home)
    assert stored["spec"] == before
    assert stored["metadata"]["annotations"][WRITTEN_IN] == "v1"
    assert (await admin.get(CUSTOM_RESOURCE_DEFINITIONS, CRD))["spec"]["conversion"] == {
        "strategy": "None"
    }

    await install(kubectl, admin, job, replica.url)
    await until(lambda: is_as_written(admin, job))


async def is_gone(client: HttpClient, namespace: str) -> bool:
    try:
        await client.get(V1, "old", namespace)
    except errors.NotFound:
        return True
    except errors.ApiError:
        return False
    return False


async def is_as_written(client: HttpClient, job: Manifest) -> bool:
    return bool(await spec_in_v1(client, job["metadata"]["namespace"]) == job["spec"])


async def test_versions_that_are_not_served_stay_so(admin, home, replica, kubectl):
    """The operator changes nothing of the CRD but the bundle."""
    job = mpijob("old", home) | {"apiVersion": "kubeflow.org/v1"}
    await install(kubectl, admin, job, replica.url)
    await edit(admin, CUSTOM_RESOURCE_DEFINITIONS, CRD, serve_less)
    await until(lambda: has_bundle(admin))
    found = await admin.get(CUSTOM_RESOURCE_DEFINITIONS, CRD)
    assert {each["name"]: each["served"] for each in found["spec"]["versions"]} == {
        "v2beta1": True,
        "v1": True,
        "v1alpha2": False,
        "v1alpha1": False,
    }
    assert await spec_in_v1(admin, home) == job["spec"]


def serve_less(manifest: Manifest) -> None:
    """Also take the bundle away, so that the operator has to write."""
    del manifest["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"]
    for each in manifest["spec"]["versions"]:
        each["served"] = each["name"] in ("v2beta1", "v1")


async def has_bundle(client: HttpClient) -> bool:
    found = await client.get(CUSTOM_RESOURCE_DEFINITIONS, CRD)
    return "caBundle" in found["spec"]["conversion"]["webhook"]["clientConfig"]


def test_the_kustomization_without_webhooks_leaves_nothing_of_them(kubectl, tmp_path):
    text = GUIDE.read_text().partition("**Without webhooks:**")[2]
    [example] = re.findall(r"\A.*?^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "kustomization.yaml").write_text(example)
    (tmp_path / "mpi-operator.yaml").write_text(
        (ROOT / "deploy/v2beta1/mpi-operator.yaml").read_text()
    )
    left = list(yaml.safe_load_all(kubectl_ok(kubectl, "kustomize", str(tmp_path))))
    kinds = {each["kind"] for each in left}
    assert not kinds & {"CustomResourceDefinition", "Service"}
    assert not [kind for kind in kinds if "Webhook" in kind]
    assert "mpi-operator-webhooks" not in {each["metadata"]["name"] for each in left}
    [deployment] = (each for each in left if each["kind"] == "Deployment")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["args"][-1] == "--webhooks=off"
