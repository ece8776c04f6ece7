"""Kueue, the queue for jobs of kubernetes-sigs: its manager, installed from its own manifests.

Everything is from the pinned module: the program, and the manifests that its releases are made of.
"""

import json
import time
from pathlib import Path
from typing import Any

from devcluster import binaries, go_sources, images
from devcluster.cluster import Cluster, CommandFailed
from devcluster.readiness import NotReady

NAMESPACE = "kueue-system"
DEPLOYMENT = "deployment/kueue-controller-manager"
_IMAGE = "localhost/kueue:pinned"
_READY_SECONDS = 180

# Pending workloads as an aggregated API. It is for people, and while the manager is not ready it
# stops every deletion of a namespace.
_NOT_NEEDED = "APIService"
_TOOL = binaries.TOOLS["kueue"]


def install(cluster: Cluster) -> None:
    """Install it on a cluster with nodes, and return when its manager is ready."""
    cluster.load(_image(cluster.directory / "kueue.tar"))
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=_manifests())
    deadline = time.monotonic() + _READY_SECONDS
    while not _is_ready(cluster):
        if time.monotonic() > deadline:
            log = cluster.kubectl("logs", DEPLOYMENT, "-n", NAMESPACE, "--tail=10")
            raise NotReady(f"Kueue is not ready after {_READY_SECONDS}s. Its log ends:\n{log}")


def _is_ready(cluster: Cluster) -> bool:
    """Whether the manager becomes ready within seconds.

    It waits for certificates that it writes into a Secret, which is mounted into its own pod. The
    node brings them there after a minute or two, or at once when anything about the pod changes.
    """
    change = f"devcluster/changed={time.time()}"
    cluster.kubectl("annotate", "pods", "--all", "-n", NAMESPACE, "--overwrite", change)
    try:
        cluster.kubectl("rollout", "status", DEPLOYMENT, "-n", NAMESPACE, "--timeout=2s")
    except CommandFailed:
        return False
    return True


def _image(archive: Path) -> Path:
    """Write the image: the static program is its only file."""
    return images.pack(
        archive,
        name=_IMAGE,
        files={"manager": binaries.provide([_TOOL.name])[_TOOL.name]},
        entrypoint=["/manager"],
        user="65532:65532",  # a number, because the pod asks for a user who is not root
    )


def _manifests() -> str:
    """What `kubectl apply --server-side` installs, as JSON."""
    found = go_sources.kustomized(_TOOL, "config/default")
    objects = [_adapted(each) for each in found if each["kind"] != _NOT_NEEDED]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


def _adapted(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest, with our image if it is the manager's."""
    if manifest["kind"] == "Deployment":
        [container] = manifest["spec"]["template"]["spec"]["containers"]
        container |= {"image": _IMAGE, "imagePullPolicy": "Never"}
        # It is ready after a second or two, and would be asked after five for the first time.
        container["readinessProbe"] |= {"initialDelaySeconds": 0, "periodSeconds": 1}
    return manifest
