"""The Helm chart: the objects of the other forms, and what its values change."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from mpi_operator.install import manifests
from mpi_operator.install.installation import Installation
from scripts import alerts, grafana_dashboard
from scripts.release import chart_package
from tests.support import golden
from tests.support.helm import CHART, helm, rendered

GOLDEN = Path(__file__).parent / "golden"
TKE = yaml.safe_load((CHART / "values-tke.yaml").read_text())
Objects = dict[tuple[str, str, str], dict[str, Any]]
HELM_LABELS = ("app.kubernetes.io/instance", "app.kubernetes.io/version", "helm.sh/chart")


def by_name(objects: list[dict[str, Any]]) -> Objects:
    """Objects by kind, namespace and name, without what Helm adds."""
    found = {}
    for each in objects:
        metadata = each["metadata"]
        for label in (*HELM_LABELS, "app.kubernetes.io/managed-by"):
            metadata.get("labels", {}).pop(label, None)
        annotations = metadata.pop("annotations", None) or {}
        annotations.pop("helm.sh/resource-policy", None)
        if annotations:
            metadata["annotations"] = annotations
        found[each["kind"], metadata.get("namespace", ""), metadata["name"]] = each
    assert len(found) == len(objects)
    return found


def deployment(objects: list[dict[str, Any]]) -> dict[str, Any]:
    [found] = (each for each in objects if each["kind"] == "Deployment")
    return dict(found["spec"]["template"]["spec"])


def kinds(objects: list[dict[str, Any]]) -> set[str]:
    return {each["kind"] for each in objects}


def test_it_installs_the_same_as_the_one_file(tmp_path: Path) -> None:
    assert by_name(rendered(tmp_path)) == by_name(manifests.everything(Installation()))


def test_it_installs_the_same_in_another_namespace(tmp_path: Path) -> None:
    found = rendered(tmp_path, "--set=namespace.name=kubeflow")
    assert by_name(found) == by_name(manifests.everything(Installation(namespace="kubeflow")))


def test_the_values_of_tencents_documentation_work(tmp_path: Path) -> None:
    found = rendered(tmp_path, "-f", str(CHART / "values-tke.yaml"))
    [container] = deployment(found)["containers"]
    assert container["image"] == "ccr.ccs.tencentyun.com/tke-market/mpi-operator:latest"
    assert ("Namespace", "", "mpi-operator") in by_name(found)


def test_an_operator_for_named_namespaces_needs_no_cluster_role(tmp_path: Path) -> None:
    found = rendered(
        tmp_path,
        "--namespace=ops",
        "--set=namespace.create=false,namespace.name=,webhooks.enabled=false,rbac.userRoles=false",
        "--set=watchNamespaces={team-a,team-b}",
    )
    assert not kinds(found) & {"ClusterRole", "ClusterRoleBinding", "Namespace", "Service"}
    roles = {key[1] for key in by_name(found) if key[::2] == ("Role", "mpi-operator")}
    assert roles == {"team-a", "team-b"}
    [container] = deployment(found)["containers"]
    assert {"--namespace=team-a,team-b", "--webhooks=off"} <= set(container["args"])
    [crd] = (each for each in found if each["kind"] == "CustomResourceDefinition")
    assert [each["name"] for each in crd["spec"]["versions"]] == ["v2beta1"]


def test_cert_manager_issues_the_certificate(tmp_path: Path) -> None:
    found = rendered(
        tmp_path,
        "--set=webhooks.certManager.enabled=true,webhooks.certManager.issuerRef.name=ours",
    )
    objects = by_name(found)
    certificate = objects["Certificate", "mpi-operator", "mpi-operator-webhook"]["spec"]
    assert certificate["dnsNames"][0] == "mpi-operator-webhook.mpi-operator.svc"
    injected = "cert-manager.io/inject-ca-from"
    assert {
        kind
        for (kind, *_), each in objects.items()
        if injected in each["metadata"].get("annotations", {})
    } == {
        "CustomResourceDefinition",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    }
    [volume] = deployment(found)["volumes"]
    assert volume["secret"]["secretName"] == certificate["secretName"]
    # Then the operator writes neither Secrets nor bundles.
    assert ("ClusterRole", "", "mpi-operator-webhooks") not in objects


def test_alerts_and_a_dashboard_come_with_it_on_request(tmp_path: Path) -> None:
    found = rendered(
        tmp_path,
        "--set=metrics.prometheusRule.enabled=true,metrics.prometheusRule.labels.release=ours",
        "--set=metrics.grafanaDashboard.enabled=true",
    )
    objects = by_name(found)
    rule = objects["PrometheusRule", "mpi-operator", "mpi-operator"]
    assert rule["spec"] == alerts.groups()
    assert rule["metadata"]["labels"]["release"] == "ours"
    config_map = objects["ConfigMap", "mpi-operator", "mpi-operator-dashboard"]
    assert config_map["metadata"]["labels"]["grafana_dashboard"] == "1"
    [shown] = config_map["data"].values()
    assert json.loads(shown) == grafana_dashboard.dashboard()


NAMESPACED = {
    "namespace": {"create": False, "name": "ops"},
    "webhooks": {"enabled": False},
    "rbac": {"userRoles": False},
    "watchNamespaces": ["team-a", "team-b"],
}
PRODUCTION = {
    "imagePullSecrets": [{"name": "registry"}],
    "replicas": 3,
    "resources": {"limits": {"memory": "2Gi"}},
    "nodeSelector": {"pool": "system"},
    "tolerations": [{"key": "system", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "topologySpreadConstraints": [],
    "priorityClassName": "system-cluster-critical",
    "podDisruptionBudget": {"maxUnavailable": "50%"},
    "podAnnotations": {"team": "ml"},
    "podLabels": {"team": "ml"},
    "serviceAccount": {"name": "mpi", "annotations": {"role": "mpi"}},
    "gangScheduling": "volcano",
    "execTransport": {"image": "registry.example.com/kubectl-delivery:1"},
    "metrics": {"serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}},
    "networkPolicy": {"enabled": True, "webhooksFrom": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]},
    "logLevel": "debug",
    "extraArgs": ["--cluster-domain=cluster.local"],
    "extraEnv": [{"name": "TZ", "value": "UTC"}],
    "extraVolumes": [{"name": "ca", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "ca", "mountPath": "/ca"}],
}


def test_every_value_has_an_effect(tmp_path: Path) -> None:
    (tmp_path / "values.json").write_text(json.dumps(PRODUCTION))
    found = rendered(tmp_path, "-f", str(tmp_path / "values.json"))
    objects, pod = by_name(found), deployment(found)
    [container] = pod["containers"]
    same = ("imagePullSecrets", "nodeSelector", "tolerations", "affinity", "priorityClassName")
    assert {name: pod[name] for name in same} == {name: PRODUCTION[name] for name in same}
    assert "topologySpreadConstraints" not in pod
    assert container["resources"]["limits"] == {"memory": "2Gi"}
    assert container["args"][1:] == [
        "--gang-scheduling=volcano",
        "--kubectl-delivery-image=registry.example.com/kubectl-delivery:1",
        "--log-level=debug",
        "--cluster-domain=cluster.local",
    ]
    assert container["env"][1:] == PRODUCTION["extraEnv"]
    assert pod["volumes"] == PRODUCTION["extraVolumes"]
    assert container["volumeMounts"] == PRODUCTION["extraVolumeMounts"]
    whole = objects["Deployment", "mpi-operator", "mpi-operator"]["spec"]
    assert whole["replicas"] == 3
    assert whole["template"]["metadata"]["labels"]["team"] == "ml"
    assert whole["template"]["metadata"]["annotations"]["team"] == "ml"
    budget = objects["PodDisruptionBudget", "mpi-operator", "mpi-operator"]["spec"]
    assert budget["maxUnavailable"] == "50%"
    assert ("ClusterRole", "", "mpi-operator-gang-scheduling") in objects
    assert {"ServiceMonitor", "PodMonitor", "NetworkPolicy"} <= kinds(found)
    bound = [each["subjects"] for each in found if "subjects" in each]
    assert {subject["name"] for subjects in bound for subject in subjects} == {"mpi"}
    account = objects["ServiceAccount", "mpi-operator", "mpi"]
    assert account["metadata"]["annotations"] == {"role": "mpi"}


@pytest.mark.parametrize(
    ("name", "values"),
    [
        pytest.param("default", {}, id="the defaults"),
        pytest.param("tke", TKE, id="those of Tencent's documentation"),
        pytest.param("namespaced", NAMESPACED, id="named namespaces, no webhooks"),
        pytest.param("production", PRODUCTION, id="every value"),
    ],
)
def test_the_objects_are_those_of_the_golden_files(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, values: dict[str, Any]
) -> None:
    """`pytest tests/unit/build tests/api/install/test_chart.py --update-golden` writes them."""
    (tmp_path / "values.json").write_text(json.dumps(values))
    found = rendered(tmp_path, "-f", str(tmp_path / "values.json"))
    is_update = request.config.getoption("--update-golden", default=False)
    golden.compare(GOLDEN / f"{name}.yaml", readable(found), is_update=is_update)


def readable(objects: list[dict[str, Any]]) -> dict[str, Any]:
    """Objects by their names, without versions, which change with each release.

    Of the CRD only what the chart changes: other tests have the rest.
    """
    facts = yaml.safe_load((CHART / "Chart.yaml").read_text())
    text = json.dumps(objects).replace(facts["version"], "VERSION")
    named = {}
    for each in json.loads(text.replace(facts["appVersion"], "VERSION")):
        metadata = each["metadata"]
        if each["kind"] == "CustomResourceDefinition":
            each["spec"]["versions"] = [version["name"] for version in each["spec"]["versions"]]
        where = f"{metadata['namespace']}/" if "namespace" in metadata else ""
        named[f"{each['kind']} {where}{metadata['name']}"] = each
    assert len(named) == len(objects)
    return named


def test_helm_reads_the_package_that_is_released(tmp_path: Path) -> None:
    package = chart_package.build(CHART, tmp_path, 0)
    expected = rendered(tmp_path)
    assert rendered(tmp_path, chart=package) == expected
    shown = helm(tmp_path, "show", "readme", str(package))
    assert shown.output.strip() == (CHART / "README.md").read_text().strip()


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        pytest.param("replica=3", "replica", id="a name that does not exist"),
        pytest.param("webhooks.enable=false", "enable", id="a nested name that does not exist"),
        pytest.param("replicas=two", "replicas", id="a word where a number is expected"),
        pytest.param("logLevel=loud", "logLevel", id="a level that does not exist"),
        pytest.param("watchNamespaces=team-a", "watchNamespaces", id="a word instead of a list"),
        pytest.param("image=busybox", "image", id="a word instead of an object"),
    ],
)
def test_a_wrong_value_is_refused(tmp_path: Path, setting: str, complaint: str) -> None:
    result = helm(tmp_path, "template", "it", str(CHART), f"--set={setting}")
    assert result.code != 0
    assert complaint in result.errors


@pytest.mark.parametrize("enabled", [True, False])
def test_the_notes_say_how_to_uninstall_without_losing_jobs(
    tmp_path: Path, *, enabled: bool
) -> None:
    values = f"--set=webhooks.enabled={json.dumps(enabled)}"
    result = helm(tmp_path, "install", "it", str(CHART), "--dry-run=client", values)
    assert result.code == 0, result.errors
    _, _, notes = result.output.partition("NOTES:")
    assert "`helm uninstall` keeps the CRD and all jobs." in notes
    assert ("--set webhooks.enabled=false" in notes) is enabled


def test_helm_finds_nothing_wrong_with_it(tmp_path: Path) -> None:
    result = helm(tmp_path, "lint", "--strict", str(CHART))
    assert result.code == 0, result.output + result.errors
