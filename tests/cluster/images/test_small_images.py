"""The images that are no part of a job's own work."""

from typing import Any

import pytest

from tests.cluster.images.crew import HELPLESS
from tests.support.pods import BUSYBOX, create, pod
from tests.support.waiting import block_until


def run(cluster, namespace, *, images):
    """Run a pod whose containers are these, one after the other, to its end; what it printed."""
    *first, last = [
        {"name": name, "image": image, "imagePullPolicy": "Never", "securityContext": HELPLESS}
        | {"volumeMounts": [{"name": "kube", "mountPath": "/opt/kube"}], **more}
        for name, image, more in images
    ]
    spec = {
        "restartPolicy": "Never",
        "securityContext": {"runAsUser": 65532},
        "volumes": [{"name": "kube", "emptyDir": {}}],
        "initContainers": first,
        "containers": [last],
    }
    create(
        cluster,
        namespace,
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "it"}, "spec": spec},
    )
    block_until(lambda: _phase(cluster, namespace) in ("Succeeded", "Failed"), 60)
    output = cluster.kubectl("logs", "it", "--namespace", namespace)
    assert _phase(cluster, namespace) == "Succeeded", output
    return output


def _phase(cluster, namespace):
    return pod(cluster, namespace, "it")["status"].get("phase")


@pytest.mark.timeout(300)
def test_the_operator_starts_without_rights_and_without_a_place_to_write(
    cluster, namespace, loaded
):
    operator = ("main", loaded("mpi-operator"), {"args": ["--help"]})
    assert "usage: mpi-operator" in run(cluster, namespace, images=[operator])


@pytest.mark.timeout(300)
def test_kubectl_is_delivered(cluster, namespace, loaded):
    delivery = ("kubectl-delivery", loaded("kubectl-delivery"), dict[str, Any]())
    main = ("main", BUSYBOX, {"command": ["/opt/kube/kubectl", "version"]})
    assert run(cluster, namespace, images=[delivery, main]).startswith("v1.")
