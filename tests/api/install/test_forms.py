"""Every form in which people install the operator, with a real kubectl and API server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from mpi_operator.install import manifests
from mpi_operator.install.installation import Installation
from tests.api.conftest import started_control_plane
from tests.support.kubectl import Kubectl

DEPLOY = Path(__file__).parents[3] / "deploy"
WHOLE = str(DEPLOY / "v2beta1/mpi-operator.yaml")
KUBEFLOW = Installation(namespace="kubeflow")
NAMESPACED = Installation(is_namespaced=True)
TEAM = Installation(namespace="team-a", is_namespaced=True)


@pytest.fixture
def kubectl(tmp_path: Path) -> Kubectl:
    """kubectl without a cluster, which can render overlays."""
    return Kubectl(tmp_path / "none", tmp_path)


@pytest.fixture
def on_new_cluster(tmp_path: Path) -> Iterator[Kubectl]:
    """kubectl with a cluster where nothing is installed."""
    with started_control_plane() as control_plane:
        yield Kubectl(control_plane.kubeconfig(), tmp_path)


def test_the_folder_installs_the_same_as_the_one_file(on_new_cluster: Kubectl) -> None:
    """The commands of the v1alpha2 documentation, as written there."""
    assert succeeds(on_new_cluster, "create", "-f", str(DEPLOY / "crd/crd-v1alpha2.yaml"))
    created = succeeds(on_new_cluster, "create", "-f", str(DEPLOY)).splitlines()
    assert created[0] == "namespace/mpi-operator created"
    assert all(line.endswith(" created") for line in created)
    assert succeeds(on_new_cluster, "diff", "-f", WHOLE) == ""


def test_applying_an_overlay_again_changes_nothing(on_new_cluster: Kubectl) -> None:
    """kubectl calls the budget "configured" each time: it patches its selector as a whole."""
    overlay = str(DEPLOY / "overlays/standalone")
    succeeds(on_new_cluster, "apply", "-k", overlay)
    before = generations(on_new_cluster)
    succeeds(on_new_cluster, "apply", "-k", overlay)
    assert generations(on_new_cluster) == before


def generations(kubectl: Kubectl) -> dict[tuple[str, str], Any]:
    """What tells that somebody changed an object; its status may change meanwhile."""
    found = json.loads(succeeds(kubectl, "get", "-f", WHOLE, "-o", "json"))["items"]
    return {
        key: each["metadata"].get("generation", each["metadata"]["resourceVersion"])
        for key, each in by_name(found).items()
    }


@pytest.mark.parametrize(
    ("overlay", "expected"),
    [
        pytest.param("standalone", manifests.everything(Installation()), id="standalone"),
        pytest.param(
            "kubeflow",
            [manifests.crd(KUBEFLOW), *manifests.roles(KUBEFLOW), *manifests.program(KUBEFLOW)],
            id="kubeflow",
        ),
        pytest.param(
            "namespaced",
            [*manifests.roles(NAMESPACED), *manifests.program(NAMESPACED)],
            id="namespaced",
        ),
    ],
)
def test_an_overlay_has_the_objects_of_its_installation(
    kubectl: Kubectl, overlay: str, expected: list[dict[str, Any]]
) -> None:
    assert by_name(rendered(kubectl, DEPLOY / "overlays" / overlay)) == by_name(expected)


def test_an_operator_for_one_namespace_moves_to_another(kubectl: Kubectl, tmp_path: Path) -> None:
    """As the how-to shows it: a kustomization that names the namespace."""
    (tmp_path / "deploy").symlink_to(DEPLOY)
    content = {"namespace": "team-a", "resources": ["deploy/overlays/namespaced"]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(content))
    found = by_name(rendered(kubectl, tmp_path))
    assert found == by_name([*manifests.roles(TEAM), *manifests.program(TEAM)])
    assert not {kind for kind, _ in found if kind.startswith("Cluster")}


def rendered(kubectl: Kubectl, directory: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(succeeds(kubectl, "kustomize", str(directory))))


def by_name(objects: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    named = {(each["kind"], each["metadata"]["name"]): each for each in objects}
    assert len(named) == len(objects)
    return named


def succeeds(kubectl: Kubectl, *arguments: str) -> str:
    result = kubectl(*arguments)
    assert result.code == 0, result.errors
    return result.output
