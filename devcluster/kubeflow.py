"""Kubeflow's operators for MPIJobs: mpi-operator, and training-operator for `kubeflow.org/v1`.

Everything is from the pinned modules: the programs, and the manifests that their releases are made
of. Only the images are ours, of the same programs.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcluster import binaries, go_sources, images, packages
from devcluster.cluster import Cluster, CommandFailed
from devcluster.readiness import NotReady

CRD = "mpijobs.kubeflow.org"
_READY_SECONDS = 180
_DELIVERY_IMAGE = "localhost/kubectl-delivery:pinned"
_BUSYBOX = packages.Package("busybox-static", ("busybox",))


@dataclass(frozen=True)
class Peer:
    """An operator: what it is built from, where it runs, and its flags in these tests."""

    tool: str
    manifests: str
    namespace: str
    name: str
    entrypoint: str
    arguments: tuple[str, ...] = ()

    @property
    def deployment(self) -> str:
        return f"deployment/{self.name}"

    @property
    def image(self) -> str:
        return f"localhost/{self.tool}:pinned"


MPI_OPERATOR = Peer(
    "kubeflow-mpi-operator",
    "manifests/overlays/standalone",
    "mpi-operator",
    "mpi-operator",
    "/mpi-operator",
)
TRAINING_OPERATOR = Peer(
    "training-operator",
    "manifests/overlays/standalone",
    "kubeflow",
    "training-operator",
    "/manager",
    (f"--mpi-kubectl-delivery-image={_DELIVERY_IMAGE}",),
)


def load(cluster: Cluster, peer: Peer) -> None:
    """Put its images onto the nodes."""
    program = binaries.provide([peer.tool])[peer.tool]
    archive = cluster.directory / f"{peer.tool}.tar"
    files: dict[str, Path | bytes] = {peer.entrypoint.strip("/"): program}
    cluster.load(
        images.pack(
            archive, name=peer.image, files=files, entrypoint=[peer.entrypoint], user="65532:65532"
        )
    )
    if peer is TRAINING_OPERATOR:
        cluster.load(_delivery(cluster.directory / "kubectl-delivery.tar"))


def install(cluster: Cluster, peer: Peer) -> None:
    """Apply its manifests as its users do, and return when it is ready."""
    objects = [_adapted(each, peer) for each in manifests(peer)]
    apply(cluster, objects)
    wait(cluster, peer)


def manifests(peer: Peer) -> list[dict[str, Any]]:
    return go_sources.kustomized(binaries.TOOLS[peer.tool], peer.manifests)


def definition(peer: Peer) -> dict[str, Any]:
    """Its definition of MPIJobs."""
    [found] = [each for each in manifests(peer) if each["metadata"]["name"] == CRD]
    return found


def apply(cluster: Cluster, objects: Sequence[dict[str, Any]]) -> None:
    command = ("apply", "--server-side", "--force-conflicts", "-f", "-")
    cluster.kubectl(*command, stdin=_list(objects))


def wait(cluster: Cluster, peer: Peer) -> None:
    """Return when it is ready."""
    deadline = time.monotonic() + _READY_SECONDS
    while not _is_ready(cluster, peer):
        if time.monotonic() > deadline:
            log = cluster.kubectl("logs", peer.deployment, "-n", peer.namespace, "--tail=20")
            raise NotReady(f"{peer.tool} is not ready. Its log ends:\n{log}")


def set_arguments(cluster: Cluster, peer: Peer, *more: str) -> None:
    """Give it flags beside its usual ones, by the patch that the docs show."""
    value = [*peer.arguments, *more]
    patch = [{"op": "add", "path": "/spec/template/spec/containers/0/args", "value": value}]
    cluster.kubectl(
        "patch", peer.deployment, "-n", peer.namespace, "--type=json", "-p", json.dumps(patch)
    )
    wait(cluster, peer)


def remove(cluster: Cluster, peer: Peer) -> None:
    """Delete it and what belongs to it, but no definition and no namespace."""
    kept = ("CustomResourceDefinition", "Namespace")
    gone = _list([each for each in manifests(peer) if each["kind"] not in kept])
    cluster.kubectl("delete", "-f", "-", "--ignore-not-found", stdin=gone)


def _is_ready(cluster: Cluster, peer: Peer) -> bool:
    """Whether it becomes ready within seconds; a change of its pod brings it its certificates."""
    change = f"devcluster/changed={time.time()}"
    cluster.kubectl("annotate", "pods", "--all", "-n", peer.namespace, "--overwrite", change)
    command = ["rollout", "status", peer.deployment, "-n", peer.namespace, "--timeout=2s"]
    try:
        cluster.kubectl(*command)
    except CommandFailed:
        return False
    return True


def _list(objects: Sequence[dict[str, Any]]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


def _adapted(manifest: dict[str, Any], peer: Peer) -> dict[str, Any]:
    if manifest["kind"] == "Deployment":
        [container] = manifest["spec"]["template"]["spec"]["containers"]
        arguments = [*(container.get("args") or ()), *peer.arguments]
        container |= {"image": peer.image, "imagePullPolicy": "Never", "args": arguments}
        if "readinessProbe" in container:  # it is ready in seconds, and should be asked sooner
            container["readinessProbe"] |= {"initialDelaySeconds": 0, "periodSeconds": 1}
    return manifest


def _delivery(archive: Path) -> Path:
    """Write the image that brings a launcher its kubectl, as that of training-operator does."""
    packages.provide([_BUSYBOX])
    busybox = packages.find("busybox")
    assert busybox, "it has just been provided"
    kubectl = binaries.provide(["kubectl"])["kubectl"]
    copy = "/bin/busybox cp /bin/kubectl $TARGET_DIR/kubectl"
    return images.pack(
        archive,
        name=_DELIVERY_IMAGE,
        files={"bin/kubectl": kubectl, "bin/busybox": Path(busybox)},
        entrypoint=["/bin/busybox", "sh", "-c", copy],
    )
