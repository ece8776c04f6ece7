"""Jobs for these tests, and helpers that look at manifests."""

from typing import Any

from mpi_operator.api import MPIJob, decode_job
from mpi_operator.build.settings import Settings
from mpi_operator.kube.resources import Manifest
from tests.support.mpijobs import mpijob

NONE = Settings()
DOMAIN = Settings(cluster_domain="example.org")
VOLCANO = Settings(gang_scheduler="volcano")
PLUGINS = Settings(gang_scheduler="bunch")
NO_SSH = Settings(is_local=True)
DELIVERY = Settings(kubectl_delivery_image="example.com/kubectl-delivery:1.0.0")

UID = "0a1b2c3d-0000-4000-8000-000000000000"


def make_job(
    name: str = "pi", *, annotations: dict[str, str] | None = None, **changes: Any
) -> MPIJob:
    """A stored job with a launcher and two workers; `changes` override it."""
    manifest = mpijob(name, "lab", **changes)
    manifest["metadata"] |= {"uid": UID, "annotations": annotations or {}}
    return decode_job(manifest)


def without_workers(**spec: Any) -> MPIJob:
    """A job whose launcher is the only pod."""
    manifest = mpijob("pi", "lab", runLauncherAsWorker=True, **spec)
    del manifest["spec"]["mpiReplicaSpecs"]["Worker"]
    return decode_job(manifest)


def pods(pod: Manifest | None = None, **container: Any) -> Manifest:
    """The spec of a role whose template differs in the pod, or in its first container."""
    first = {"name": "mpi", "image": "example.com/mpi:1", **container}
    return {"template": {"spec": {"containers": [first], **(pod or {})}}}


def first_container(pod_spec: Manifest) -> Manifest:
    found: Manifest = pod_spec["containers"][0]
    return found


def environment(pod_spec: Manifest) -> dict[str, str]:
    """The variables of the first container, as a process sees them."""
    return {each["name"]: each.get("value", "") for each in first_container(pod_spec)["env"]}


def volumes(pod_spec: Manifest) -> dict[str, Manifest]:
    return {each["name"]: each for each in pod_spec["volumes"]}


def mounts(pod_spec: Manifest) -> dict[str, str]:
    """Which volume is at which path of the first container."""
    return {each["mountPath"]: each["name"] for each in first_container(pod_spec)["volumeMounts"]}
