"""The `scale` subresource: the replicas of an object, in the same form for every kind. Pure."""

from typing import Any

from mpi_operator.kube.errors import Cause
from mpi_operator.kube.resources import Manifest, Resource

from . import api_errors
from .served_kinds import Scale
from .stored_object import value_at
from .updates import merge_patch

SCALES = Resource("autoscaling", "v1", "scales", "Scale")
_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(manifest: Manifest, paths: Scale) -> Manifest:
    """The Scale object of an object."""
    replicas = value_at(manifest, paths.replicas)
    if replicas is None:
        raise api_errors.internal(f'the spec replicas field "{paths.replicas}" does not exist')
    selector = value_at(manifest, paths.selector) if paths.selector else None
    current = value_at(manifest, paths.status_replicas) if paths.status_replicas else None
    metadata = manifest["metadata"]
    return {
        "apiVersion": SCALES.api_version,
        "kind": SCALES.kind,
        "metadata": {field: metadata[field] for field in _METADATA if field in metadata},
        "spec": {"replicas": replicas},
        "status": {"replicas": current or 0, **({"selector": selector} if selector else {})},
    }


def scaled(manifest: Manifest, scale: Manifest, paths: Scale) -> Manifest:
    """The object with the replicas of a Scale object."""
    replicas = value_at(scale, "spec.replicas") or 0
    if not isinstance(replicas, int) or replicas < 0:
        why = f"Invalid value: {replicas}: must be greater than or equal to 0"
        cause = Cause("FieldValueInvalid", why, "spec.replicas")
        raise api_errors.invalid(SCALES, manifest["metadata"]["name"], [cause])
    patch: Any = replicas
    for name in reversed(paths.replicas.strip(".").split(".")):
        patch = {name: patch}
    result: Manifest = merge_patch(manifest, patch)
    return result
