"""What checkers of manifests such as Polaris and kube-score ask for, in every form we ship.

The chart with four sets of values is in the golden files of `tests/api/install`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
CHART = sorted((ROOT / "tests/api/install/golden").glob("*.yaml"))
MANIFESTS = [
    ROOT / "deploy" / name
    for name in (
        "v2beta1/mpi-operator.yaml",
        "3-mpi-operator.yaml",
        "base/mpi-operator.yaml",
        "overlays/namespaced/mpi-operator.yaml",
    )
]
FORMS = [*MANIFESTS, *CHART]
EVERY_FORM = pytest.mark.parametrize(
    "objects", FORMS, indirect=True, ids=lambda file: file.relative_to(ROOT).as_posix()
)


@pytest.fixture(scope="module")
def objects(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    loaded = yaml.load_all(request.param.read_text(), Loader=yaml.CSafeLoader)
    return list(next(loaded).values()) if request.param in CHART else list(loaded)


def of_kind(objects: list[dict[str, Any]], kind: str) -> Iterator[dict[str, Any]]:
    return (each for each in objects if each["kind"] == kind)


def deployment(objects: list[dict[str, Any]]) -> dict[str, Any]:
    [found] = of_kind(objects, "Deployment")
    return found


def pod(objects: list[dict[str, Any]]) -> dict[str, Any]:
    return dict(deployment(objects)["spec"]["template"]["spec"])


def container(objects: list[dict[str, Any]]) -> dict[str, Any]:
    [found] = pod(objects)["containers"]
    assert "initContainers" not in pod(objects)
    return dict(found)


def test_there_are_four_sets_of_values() -> None:
    assert [file.stem for file in CHART] == ["default", "namespaced", "production", "tke"]


@EVERY_FORM
def test_no_other_kind_starts_pods(objects: list[dict[str, Any]]) -> None:
    """Else the checks below would miss its pods."""
    starters = {"Pod", "Job", "CronJob", "DaemonSet", "StatefulSet", "ReplicaSet"}
    assert not starters & {each["kind"] for each in objects}


@EVERY_FORM
def test_the_pod_gets_nothing_of_its_node(objects: list[dict[str, Any]]) -> None:
    spec = pod(objects)
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
    assert not [each for each in spec.get("volumes", ()) if "hostPath" in each]
    assert not [port for port in container(objects)["ports"] if "hostPort" in port]


@EVERY_FORM
def test_it_runs_without_rights(objects: list[dict[str, Any]]) -> None:
    of_pod, own = pod(objects)["securityContext"], container(objects)["securityContext"]
    assert of_pod["runAsNonRoot"]
    assert min(of_pod["runAsUser"], of_pod["runAsGroup"]) > 10_000
    assert of_pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not own.get("privileged", False)
    assert own["allowPrivilegeEscalation"] is False
    assert own["readOnlyRootFilesystem"] is True
    assert own["capabilities"] == {"drop": ["ALL"]}


@EVERY_FORM
def test_it_has_requests_and_a_memory_limit(objects: list[dict[str, Any]]) -> None:
    """But no CPU limit: throttling could make it miss the renewal of its lease."""
    resources = container(objects)["resources"]
    assert set(resources["requests"]) == {"cpu", "memory"}
    assert set(resources["limits"]) == {"memory"}


@EVERY_FORM
def test_it_has_different_probes_for_living_and_being_ready(objects: list[dict[str, Any]]) -> None:
    found = container(objects)
    paths = [found[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")]
    assert paths == ["/healthz", "/readyz"]
    names = {port["name"] for port in found["ports"]}
    assert found["livenessProbe"]["httpGet"]["port"] in names


@EVERY_FORM
def test_the_image_has_a_version(objects: list[dict[str, Any]]) -> None:
    image = container(objects)["image"]
    assert container(objects)["imagePullPolicy"] == "IfNotPresent"
    # Tencent's documentation says latest.
    assert image.partition(":")[2] not in ("", "latest") or "tencentyun" in image


@EVERY_FORM
def test_a_drain_or_a_lost_node_leaves_a_replica(objects: list[dict[str, Any]]) -> None:
    spec = deployment(objects)["spec"]
    [budget] = of_kind(objects, "PodDisruptionBudget")
    assert spec["replicas"] >= 2
    assert budget["spec"]["selector"] == spec["selector"]
    assert pod(objects).get("topologySpreadConstraints") or pod(objects).get("affinity")


@EVERY_FORM
def test_selectors_select_the_pods(objects: list[dict[str, Any]]) -> None:
    spec = deployment(objects)["spec"]
    labels = spec["template"]["metadata"]["labels"].items()
    assert spec["selector"]["matchLabels"].items() <= labels
    for service in of_kind(objects, "Service"):
        assert service["spec"]["selector"].items() <= labels


@EVERY_FORM
def test_it_has_an_account_of_its_own_and_no_secret_in_its_environment(
    objects: list[dict[str, Any]],
) -> None:
    assert pod(objects)["serviceAccountName"] not in ("", "default")
    given = container(objects).get("env", ()), container(objects).get("envFrom", ())
    assert "secret" not in str(given).lower()
