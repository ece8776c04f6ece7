"""Kueue, the queue for jobs of kubernetes-sigs: its manager as an image, and its manifests.

    cluster.load(kueue.image(directory / "kueue.tar"))
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=kueue.manifests())
    cluster.kubectl("rollout", "status", kueue.DEPLOYMENT, "-n", kueue.NAMESPACE)

Everything is from the pinned module: the program, and the manifests that its releases are made of.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import yaml

from devcluster import binaries, go_sources, images

NAMESPACE = "kueue-system"
DEPLOYMENT = "deployment/kueue-controller-manager"
IMAGE = "localhost/kueue:pinned"

# Pending workloads as an aggregated API. It is for people, and while the manager is not ready it
# stops every deletion of a namespace.
_NOT_NEEDED = "APIService"
_TOOL = binaries.TOOLS["kueue"]


def image(archive: Path) -> Path:
    """Write the image: the static program is its only file."""
    return images.pack(
        archive,
        name=IMAGE,
        files={"manager": binaries.provide([_TOOL.name])[_TOOL.name]},
        entrypoint=["/manager"],
        user="65532:65532",  # a number, because the pod asks for a user who is not root
    )


def manifests() -> str:
    """What `kubectl apply --server-side` installs, as JSON."""
    kubectl = binaries.provide(["kubectl"])["kubectl"]
    source = go_sources.directory(_TOOL) / "config" / "default"
    printed = subprocess.run(
        [kubectl, "kustomize", source], check=True, capture_output=True, text=True
    ).stdout
    objects = [
        _adapted(each)
        for each in yaml.load_all(printed, yaml.CSafeLoader)
        if each["kind"] != _NOT_NEEDED
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


def _adapted(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest, with our image if it is the manager's."""
    if manifest["kind"] == "Deployment":
        [container] = manifest["spec"]["template"]["spec"]["containers"]
        container |= {"image": IMAGE, "imagePullPolicy": "Never"}
        # It is ready after a second or two, and would be asked after five for the first time.
        container["readinessProbe"] |= {"initialDelaySeconds": 0, "periodSeconds": 1}
    return manifest
