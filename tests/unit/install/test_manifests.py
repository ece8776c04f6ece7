"""What an installation consists of."""

from pathlib import Path

import pytest
import yaml

from mpi_operator.install import manifests
from mpi_operator.install.installation import Installation

DEPLOY = Path(__file__).parents[3] / "deploy"
STANDARD = Installation()
NAMESPACED = Installation(namespace="team-a", is_namespaced=True)


def kinds(objects):
    return {each["kind"] for each in objects}


def container(chosen):
    deployment, *_ = manifests.program(chosen)
    [found] = deployment["spec"]["template"]["spec"]["containers"]
    return found


def test_the_folder_has_no_crd_and_no_kustomization():
    """`kubectl create -f deploy/` would fail: the CRD is there already, the other is no object."""
    documents = [
        document
        for path in sorted(DEPLOY.glob("*.y*ml"))
        for document in yaml.safe_load_all(path.read_text())
    ]
    assert documents[0]["kind"] == "Namespace"
    assert not kinds(documents) & {"CustomResourceDefinition", "Kustomization"}
    assert not list(DEPLOY.glob("*.json"))


def test_all_objects_with_a_namespace_are_in_that_of_the_operator():
    for each in manifests.everything(Installation(namespace="kubeflow")):
        assert each["metadata"].get("namespace", "kubeflow") == "kubeflow"
        assert "mpi-operator.svc" not in str(each)


def test_every_binding_is_for_the_account_in_that_namespace():
    bound = [
        subject
        for each in manifests.everything(Installation(namespace="kubeflow"))
        for subject in each.get("subjects", ())
    ]
    assert {each["namespace"] for each in bound} == {"kubeflow"}


def test_the_api_server_finds_the_webhooks_in_that_namespace():
    crd, *others = (
        each
        for each in manifests.everything(Installation(namespace="kubeflow"))
        if each["kind"].endswith(("Definition", "Configuration"))
    )
    calls = [crd["spec"]["conversion"]["webhook"], *(each["webhooks"][0] for each in others)]
    assert {each["clientConfig"]["service"]["namespace"] for each in calls} == {"kubeflow"}


def test_an_operator_for_one_namespace_needs_no_cluster_role():
    objects = manifests.everything(NAMESPACED)
    assert kinds(objects) == {
        "CustomResourceDefinition",
        "ServiceAccount",
        "Role",
        "RoleBinding",
        "Deployment",
        "PodDisruptionBudget",
    }
    assert {"--namespace=$(NAMESPACE)", "--webhooks=off"} <= set(container(NAMESPACED)["args"])
    assert [each["name"] for each in container(NAMESPACED)["ports"]] == ["http"]


def test_a_crd_without_webhooks_has_one_version():
    [version] = manifests.crd(NAMESPACED)["spec"]["versions"]
    assert version["name"] == "v2beta1"


@pytest.mark.parametrize("chosen", [STANDARD, NAMESPACED], ids=["all namespaces", "one"])
def test_the_pod_is_restricted_probed_and_limited(chosen):
    found = container(chosen)
    assert found["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert {"livenessProbe", "readinessProbe"} <= set(found)
    assert "memory" in found["resources"]["limits"]
    assert set(found["resources"]["requests"]) == {"cpu", "memory"}


def test_flags_and_image_are_the_administrators():
    chosen = Installation(image="registry.example.com/it:1", flags=("--threadiness=4",))
    assert container(chosen)["image"] == "registry.example.com/it:1"
    assert container(chosen)["args"][-1] == "--threadiness=4"
