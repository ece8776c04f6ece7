"""MPIJobs of every version for tests, and what they have in common."""

from typing import Any

from mpi_operator.api.conversion import VERSIONS
from mpi_operator.kube.resources import Manifest, Resource
from tests.support.mpijobs import mpijob, template

RESOURCES = {each: Resource("kubeflow.org", each, "mpijobs", "MPIJob") for each in VERSIONS}
WRITTEN_IN = "mpi-operator.kubeflow.org/written-in"


def v1(name: str = "pi", namespace: str = "default", **spec: Any) -> Manifest:
    """A job of v1 with a launcher and two workers."""
    return mpijob(name, namespace, **spec) | {"apiVersion": "kubeflow.org/v1"}


def v1alpha2(name: str = "pi", namespace: str = "default", **spec: Any) -> Manifest:
    """A job of v1alpha2 with a launcher and two workers."""
    return mpijob(name, namespace, **spec) | {"apiVersion": "kubeflow.org/v1alpha2"}


def v1alpha1(name: str = "pi", namespace: str = "default", **spec: Any) -> Manifest:
    """A job of v1alpha1 with a template only."""
    return {
        "apiVersion": "kubeflow.org/v1alpha1",
        "kind": "MPIJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"template": template(), **spec},
    }


def typical(version: str, name: str, namespace: str) -> Manifest:
    """A job with two workers, and with fields that only its version has."""
    worker = {"replicas": 2, "restartPolicy": "OnFailure"}
    match version:
        case "v1":
            return v1(name, namespace, slotsPerWorker=1, cleanPodPolicy="Running", worker=worker)
        case "v1alpha2":
            return v1alpha2(name, namespace, slotsPerWorker=1, cleanPodPolicy="All", backoffLimit=2)
        case "v1alpha1":
            return v1alpha1(name, namespace, slotsPerWorker=4, replicas=2, launcherOnMaster=True)
        case _:
            policy = {"cleanPodPolicy": "Running", "suspend": False}
            return mpijob(name, namespace, mpiImplementation="MPICH", runPolicy=policy)


def workers_patch(version: str, number: int) -> Manifest:
    """The fields of a job that say how many workers it has."""
    if version == "v1alpha1":
        return {"spec": {"replicas": number}}
    return {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": number}}}}


def workers(job: Manifest) -> int | None:
    """The number of workers of a job of any version."""
    spec = job["spec"]
    if job["apiVersion"].endswith("/v1alpha1"):
        found = spec.get("replicas")
    else:
        found = spec["mpiReplicaSpecs"]["Worker"].get("replicas")
    return found if isinstance(found, int) else None
