"""The files of `deploy/`: the same objects in the forms in which people install them.

| form | files |
|---|---|
| one file | `v2beta1/mpi-operator.yaml` |
| a folder | `crd/crd-v1alpha2.yaml`, then `*.yaml`: no CRD and no kustomization there |
| kustomize | `base/` and `overlays/` |
| single parts | `crd/`, `v2beta1-only/`, `rbac/` |
"""

from collections.abc import Callable

import yaml

from mpi_operator.api.crd import custom_resource_definition, v2beta1_only
from mpi_operator.install import manifests, rbac, webhooks
from mpi_operator.install.installation import Installation, Manifest
from mpi_operator.install.yaml_text import yaml_text

STANDARD = Installation()
NAMESPACED = Installation(is_namespaced=True)
CRD = "mpijobs.kubeflow.org.yaml"


def _written(make: Callable[[], list[Manifest]], purpose: str) -> Callable[[], str]:
    return lambda: yaml_text(make(), purpose)


def _whole() -> dict[str, Callable[[], str]]:
    return {
        "deploy/v2beta1/mpi-operator.yaml": _written(
            lambda: manifests.everything(STANDARD),
            "MPI Operator for all namespaces. Install it with kubectl apply -f.",
        ),
        "deploy/1-namespace.yaml": _written(
            lambda: manifests.namespaces(STANDARD), "The namespace of the operator."
        ),
        "deploy/2-rbac.yaml": _written(
            lambda: manifests.roles(STANDARD), "The service account and its permissions."
        ),
        "deploy/3-mpi-operator.yaml": _written(
            lambda: manifests.program(STANDARD),
            "The operator, and how the API server calls it.",
        ),
    }


def _crds() -> dict[str, Callable[[], str]]:
    return {
        f"deploy/crd/{CRD}": _written(
            lambda: [custom_resource_definition()], "MPIJobs in all API versions."
        ),
        "deploy/crd/crd-v1alpha2.yaml": _written(
            lambda: [custom_resource_definition()],
            f"The same as {CRD}, under the name of the v1alpha2 operator.",
        ),
        "deploy/crd/kustomization.yaml": lambda: _kustomization([CRD]),
        f"deploy/v2beta1-only/{CRD}": _written(
            lambda: [v2beta1_only()],
            "MPIJobs in v2beta1 only, for an operator with --webhooks=off.",
        ),
    }


def _parts() -> dict[str, Callable[[], str]]:
    return {
        "deploy/rbac/account.yaml": _written(
            lambda: rbac.account(STANDARD),
            "Service account and leader election. Every installation needs it.",
        ),
        "deploy/rbac/cluster.yaml": _written(
            lambda: rbac.cluster(STANDARD),
            "Everything for an operator that runs the jobs of all namespaces.",
        ),
        "deploy/rbac/exec-transport.yaml": _written(
            lambda: rbac.exec_transport(STANDARD),
            "Additional roles for jobs whose launcher reaches its workers by exec: those of v1,"
            " v1alpha2 and v1alpha1.",
        ),
        "deploy/rbac/exec-transport-namespaced.yaml": _written(
            lambda: rbac.exec_transport_namespaced(STANDARD),
            "Roles of exec-transport.yaml, for an operator with --namespace: kubectl apply -n"
            " NAMESPACE -f, for each namespace.",
        ),
        "deploy/rbac/gang-scheduling.yaml": _written(
            lambda: rbac.gang_scheduling(STANDARD),
            "Additional roles for an operator with --gang-scheduling.",
        ),
        "deploy/rbac/namespaced.yaml": _written(
            lambda: rbac.namespaced(STANDARD),
            "For an operator with --namespace: kubectl apply -n NAMESPACE -f, for each namespace.",
        ),
        "deploy/rbac/users.yaml": _written(rbac.users, "Roles for users of MPIJobs."),
        "deploy/rbac/webhooks.yaml": _written(
            lambda: rbac.webhooks(STANDARD),
            "Additional roles for an operator without --webhooks=off.",
        ),
        "deploy/webhooks/webhooks.yaml": _written(
            lambda: webhooks.everything(STANDARD),
            "How the API server calls an operator without --webhooks=off.",
        ),
    }


def _kustomize() -> dict[str, Callable[[], str]]:
    return {
        "deploy/base/rbac.yaml": _written(
            lambda: manifests.roles(STANDARD), "The service account and its permissions."
        ),
        "deploy/base/mpi-operator.yaml": _written(
            lambda: manifests.program(STANDARD), "The operator, and how the API server calls it."
        ),
        "deploy/base/kustomization.yaml": lambda: _kustomization(
            ["../crd", "rbac.yaml", "mpi-operator.yaml"]
        ),
        "deploy/overlays/standalone/namespace.yaml": _written(
            lambda: manifests.namespaces(STANDARD), "The namespace of the operator."
        ),
        "deploy/overlays/standalone/kustomization.yaml": lambda: _kustomization(
            ["namespace.yaml", "../../base"]
        ),
        "deploy/overlays/kubeflow/kustomization.yaml": lambda: _kustomization(
            ["../../base"], namespace="kubeflow", patches=_webhooks_in("kubeflow")
        ),
        "deploy/overlays/namespaced/rbac.yaml": _written(
            lambda: manifests.roles(NAMESPACED), "The service account and its permissions."
        ),
        "deploy/overlays/namespaced/mpi-operator.yaml": _written(
            lambda: manifests.program(NAMESPACED), "The operator."
        ),
        "deploy/overlays/namespaced/kustomization.yaml": lambda: _kustomization(
            ["rbac.yaml", "mpi-operator.yaml"], namespace=NAMESPACED.namespace
        ),
    }


def _webhooks_in(namespace: str) -> list[Manifest]:
    """Patches for the fields that name a namespace and that kustomize does not know."""
    service = "clientConfig/service/namespace"
    places = {
        "CustomResourceDefinition": f"/spec/conversion/webhook/{service}",
        "MutatingWebhookConfiguration": f"/webhooks/0/{service}",
        "ValidatingWebhookConfiguration": f"/webhooks/0/{service}",
    }
    return [
        {
            "target": {"kind": kind},
            "patch": f"- {{ op: replace, path: {path}, value: {namespace} }}\n",
        }
        for kind, path in places.items()
    ]


def _kustomization(
    resources: list[str], namespace: str = "", patches: list[Manifest] | None = None
) -> str:
    content: Manifest = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        **({"namespace": namespace} if namespace else {}),
        "resources": resources,
        **({"patches": patches} if patches else {}),
    }
    return "# Made by `make generate`. Do not edit.\n" + yaml.safe_dump(content, sort_keys=False)


FILES = {**_whole(), **_crds(), **_parts(), **_kustomize()}
