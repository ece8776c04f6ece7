"""Jobs for the tests of conversion."""

from typing import Any

from mpi_operator.api import annotations as names
from mpi_operator.api.conversion.places import value_at, with_value

WORKER = "spec.mpiReplicaSpecs.Worker"
LAUNCHER = "spec.mpiReplicaSpecs.Launcher"


def container(**fields: Any) -> dict[str, Any]:
    return {"name": "mpi", "image": "example.com/pi:1", **fields}


def template(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [container(**fields)]}}


def with_roles(version: str, **spec: Any) -> dict[str, Any]:
    """A job with a launcher and two workers."""
    roles = {
        "Launcher": {"replicas": 1, "template": template(command=["mpirun"])},
        "Worker": {"replicas": 2, "template": template()},
    }
    return job(version, mpiReplicaSpecs=roles, **spec)


def job(version: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"kubeflow.org/{version}",
        "kind": "MPIJob",
        "metadata": {"name": "pi", "namespace": "default"},
        "spec": spec,
    }


def edited(manifest: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The job with other values at these places."""
    for place, value in changes.items():
        manifest = with_value(manifest, tuple(place.split(".")), value)
    return manifest


def at(manifest: dict[str, Any], place: str) -> Any:
    return value_at(manifest, tuple(place.split(".")))


def annotation(manifest: dict[str, Any], name: str) -> str | None:
    found: str | None = manifest["metadata"].get("annotations", {}).get(name)
    return found


def kept(manifest: dict[str, Any]) -> str | None:
    return annotation(manifest, names.CONVERTED_FIELDS)
