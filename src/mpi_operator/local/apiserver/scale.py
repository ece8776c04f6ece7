"""The size of an object as one small object of its own, the same for every kind. Pure."""

from typing import Any

from mpi_operator.kube.errors import Cause
from mpi_operator.kube.resources import Manifest, Resource

from . import api_errors
from .served_kinds import Scale
from .stored_object import value_at
from .updates import merged

SCALES = Resource("autoscaling", "v1", "scales", "Scale")
_SHOWN = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(manifest: Manifest, paths: Scale) -> Manifest:
    """The size of an object, wanted and found."""
    replicas = value_at(manifest, paths.replicas)
    if replicas is None:
        raise api_errors.internal(f'the spec replicas field "{paths.replicas}" does not exist')
    selector = value_at(manifest, paths.selector) if paths.selector else None
    found = value_at(manifest, paths.status_replicas) if paths.status_replicas else None
    metadata = manifest["metadata"]
    return {
        "apiVersion": SCALES.api_version,
        "kind": SCALES.kind,
        "metadata": {field: metadata[field] for field in _SHOWN if field in metadata},
        "spec": {"replicas": replicas},
        "status": {"replicas": found or 0, **({"selector": selector} if selector else {})},
    }


def scaled(manifest: Manifest, scale: Manifest, paths: Scale) -> Manifest:
    """The object with the size that somebody wants."""
    replicas = value_at(scale, "spec.replicas") or 0
    if not isinstance(replicas, int) or replicas < 0:
        why = f"Invalid value: {replicas}: must be greater than or equal to 0"
        cause = Cause("FieldValueInvalid", why, "spec.replicas")
        raise api_errors.invalid(SCALES, manifest["metadata"]["name"], [cause])
    change: Any = replicas
    for name in reversed(paths.replicas.strip(".").split(".")):
        change = {name: change}
    result: Manifest = merged(manifest, change)
    return result
