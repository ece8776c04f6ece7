"""What a delete request makes of an object. Pure.

Most objects are removed at once. One with finalizers stays until the last of them is removed, and a
pod on a node stays until its kubelet has terminated it; until then both have a `deletionTimestamp`.
For a pod that is the end of its grace period. The kubelet confirms the termination by deleting the
pod with a grace period of 0.
"""

from datetime import datetime, timedelta

from mpi_operator.kube.client import DeleteOptions, Propagation
from mpi_operator.kube.resources import Manifest, Resource
from mpi_operator.local.times import moment, timestamp

from . import api_errors
from .object_store import FOREGROUND_FINALIZER
from .served_kinds import Kind
from .stored_object import StoredObject

_ORPHAN_FINALIZER = "orphan"
_TERMINAL_PHASES = ("Succeeded", "Failed")


def check_preconditions(resource: Resource, stored: StoredObject, options: DeleteOptions) -> None:
    """Raise Conflict if the UID or the version in a delete request is not the stored one."""
    uid, version = options.uid, options.resource_version
    if uid and uid != stored.uid:
        why = (
            f"the UID in the precondition ({uid}) does not match the UID in record ({stored.uid}). "
            "The object might have been deleted and then recreated"
        )
        raise api_errors.conflict(resource, stored.key.name, why)
    if version and version != str(stored.version):
        why = (
            f"the ResourceVersion in the precondition ({version}) does not match the "
            f"ResourceVersion in record ({stored.version}). The object might have been modified"
        )
        raise api_errors.conflict(resource, stored.key.name, why)


def marked_for_deletion(
    kind: Kind, manifest: Manifest, now: datetime, options: DeleteOptions
) -> Manifest:
    """The object with its deletion metadata; `is_gone` tells whether it can be removed."""
    given = options.grace_period_seconds
    requested = None if given is None else _non_negative(given)
    if _is_in_grace_period(manifest):
        return _shortened(manifest, now, requested)
    grace = _grace_period(manifest, requested) if kind.is_graceful else 0
    return _marked(_with_finalizers(manifest, options.propagation), now, grace)


def is_gone(manifest: Manifest) -> bool:
    """Whether an object is deleted and neither a finalizer nor a grace period keeps it."""
    metadata = manifest["metadata"]
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("deletionGracePeriodSeconds")
        and not metadata.get("finalizers")
    )


def _non_negative(grace: int) -> int:
    return grace if grace >= 0 else 1  # as Kubernetes reads a negative value


def _is_in_grace_period(manifest: Manifest) -> bool:
    metadata = manifest["metadata"]
    return "deletionTimestamp" in metadata and bool(metadata.get("deletionGracePeriodSeconds"))


def _shortened(manifest: Manifest, now: datetime, requested: int | None) -> Manifest:
    """The object with a shorter grace period; it never gets longer."""
    metadata = manifest["metadata"]
    current = metadata["deletionGracePeriodSeconds"]
    if requested is None or requested >= current:
        return manifest
    started = moment(metadata["deletionTimestamp"]) - timedelta(seconds=current)
    end = started + timedelta(seconds=requested)
    if end < now:
        # The new grace period is over already. Unless it is 0, the kubelet still has to confirm.
        end, requested = now, min(requested, 1)
    return _with_metadata(
        manifest, deletionTimestamp=timestamp(end), deletionGracePeriodSeconds=requested
    )


def _grace_period(manifest: Manifest, requested: int | None) -> int:
    """The grace period of a pod: none if it is on no node or has terminated."""
    spec, status = manifest.get("spec", {}), manifest.get("status", {})
    if not spec.get("nodeName") or status.get("phase") in _TERMINAL_PHASES:
        return 0
    default: int = spec.get("terminationGracePeriodSeconds", 0)
    return default if requested is None else requested


def _with_finalizers(manifest: Manifest, propagation: Propagation) -> Manifest:
    """The object with the finalizer that a foreground deletion needs, and no other does."""
    current = manifest["metadata"].get("finalizers", ())
    others = [each for each in current if each not in (FOREGROUND_FINALIZER, _ORPHAN_FINALIZER)]
    added = [FOREGROUND_FINALIZER] if propagation is Propagation.FOREGROUND else []
    return _with_metadata(manifest, finalizers=[*others, *added])


def _marked(manifest: Manifest, now: datetime, grace: int) -> Manifest:
    metadata = manifest["metadata"]
    if "deletionTimestamp" in metadata:
        return _with_metadata(manifest, deletionGracePeriodSeconds=0)
    generation = {"generation": metadata["generation"] + 1} if metadata.get("generation") else {}
    return _with_metadata(
        manifest,
        deletionTimestamp=timestamp(now + timedelta(seconds=grace)),
        deletionGracePeriodSeconds=grace,
        **generation,
    )


def _with_metadata(manifest: Manifest, **changes: object) -> Manifest:
    metadata = {**manifest["metadata"], **changes}
    if not metadata.get("finalizers"):
        metadata.pop("finalizers", None)
    return {**manifest, "metadata": metadata}
