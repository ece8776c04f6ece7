"""Pods for tests: legal ones, with the one thing that matters changed."""

from typing import Any

from mpi_operator.kube.resources import Manifest


def make_pod(name: str = "p", **spec: Any) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-of-{name}"},
        "spec": {"containers": [make_container()], "restartPolicy": "Never", **spec},
    }


def make_container(name: str = "main", **fields: Any) -> Manifest:
    return {"name": name, "image": "example.com/none:1", **fields}
