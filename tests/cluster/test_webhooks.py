"""The API server asks webhooks that are pods."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devcluster import pki
from devcluster.cluster import Cluster
from devcluster.endpoint import Answer
from tests.cluster.conftest import Loaded
from tests.support import webhook
from tests.support.pods import await_ready, create
from tests.support.waiting import block_until


@pytest.fixture
def denied_namespace(
    cluster: Cluster, namespace: str, loaded: Loaded, tmp_path: Path
) -> Iterator[str]:
    """A namespace in which a pod has to be asked about each new ConfigMap."""
    authority = pki.create_authority(tmp_path / "ca")
    files = authority.issue_server(tmp_path / "webhook", [f"webhook.{namespace}.svc"])
    certificate = (f"--cert={files.certificate}", f"--key={files.key}")
    cluster.kubectl("create", "secret", "tls", "webhook", *certificate, "-n", namespace)
    # The operator's image, because it has Python.
    create(cluster, namespace, _pod(loaded("mpi-operator")), _service())
    await_ready(cluster, namespace, "webhook")
    configuration = _configuration(namespace, authority.files.certificate)
    cluster.kubectl("create", "-f", "-", stdin=json.dumps(configuration))
    yield namespace
    cluster.kubectl("delete", configuration["kind"], namespace)


def test_a_pod_denies_what_it_does_not_want(cluster: Cluster, denied_namespace: str) -> None:
    words = '"webhook.example.com" denied the request: webhook does not want thing'

    def is_denied() -> bool:
        answer = _create_config_map(cluster, denied_namespace)
        return answer.status == 400 and answer.json()["message"].endswith(words)

    block_until(is_denied)  # it may take a second until all know of it
    assert _create_config_map(cluster, "default").status == 201


def _create_config_map(cluster: Cluster, namespace: str) -> Answer:
    """Ask for one, and leave nothing behind."""
    path = f"/api/v1/namespaces/{namespace}/configmaps?dryRun=All"
    return cluster.endpoint().request("POST", path, {"metadata": {"name": "thing"}})


def _pod(image: str) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "Never",
        "command": ["python3", "-c", Path(webhook.__file__).read_text()],
        "volumeMounts": [{"name": "tls", "mountPath": webhook.CERTIFICATE}],
    }
    tls = {"name": "tls", "secret": {"secretName": "webhook"}}
    return {
        "kind": "Pod",
        "metadata": {"name": "webhook", "labels": {"app": "webhook"}},
        "spec": {"containers": [container], "volumes": [tls]},
    }


def _service() -> dict[str, Any]:
    ports = [{"port": 443, "targetPort": webhook.PORT}]
    spec = {"selector": {"app": "webhook"}, "ports": ports}
    return {"kind": "Service", "metadata": {"name": "webhook"}, "spec": spec}


def _configuration(namespace: str, authority: Path) -> dict[str, Any]:
    """That a webhook must be asked, here and nowhere else."""
    asked = {
        "name": "webhook.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "rules": [
            {
                "operations": ["CREATE"],
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "resources": ["configmaps"],
            }
        ],
        "clientConfig": {
            "service": {"name": "webhook", "namespace": namespace},
            "caBundle": base64.b64encode(authority.read_bytes()).decode(),
        },
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": namespace},
        "webhooks": [asked],
    }
