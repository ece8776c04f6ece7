"""What becomes of an object that is to be deleted. Pure.

Most are gone at once. An object with finalizers stays until their owners have removed them, and a
pod that runs stays until its node has ended it: both carry a `deletionTimestamp` meanwhile. For a
pod that is the time by which it should be gone; its node confirms by deleting it without grace.
"""

from datetime import datetime, timedelta

from mpi_operator.kube.client import DeleteOptions, Propagation
from mpi_operator.kube.resources import Manifest
from mpi_operator.local.times import moment, timestamp

from .object_store import FOREGROUND
from .served_kinds import Kind

_ORPHAN = "orphan"
_ENDED = ("Succeeded", "Failed")


def after_deletion(
    kind: Kind, manifest: Manifest, now: datetime, options: DeleteOptions
) -> Manifest:
    """The object, marked; `is_over` says whether that was all that was missing."""
    given = options.grace_period_seconds
    wanted = None if given is None else _sensible(given)
    if _is_ending(manifest):
        return _hurried(manifest, now, wanted)
    grace = _grace(manifest, wanted) if kind.is_graceful else 0
    return _marked(_with_finalizers(manifest, options.propagation), now, grace)


def is_over(manifest: Manifest) -> bool:
    """Whether an object is deleted and nothing keeps it."""
    metadata = manifest["metadata"]
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("deletionGracePeriodSeconds")
        and not metadata.get("finalizers")
    )


def _sensible(grace: int) -> int:
    return grace if grace >= 0 else 1  # Kubernetes' reading of a negative one


def _is_ending(manifest: Manifest) -> bool:
    """Whether an object is in its grace period, which only ever gets shorter."""
    metadata = manifest["metadata"]
    return "deletionTimestamp" in metadata and bool(metadata.get("deletionGracePeriodSeconds"))


def _hurried(manifest: Manifest, now: datetime, wanted: int | None) -> Manifest:
    metadata = manifest["metadata"]
    given = metadata["deletionGracePeriodSeconds"]
    if wanted is None or wanted >= given:
        return manifest
    asked = moment(metadata["deletionTimestamp"]) - timedelta(seconds=given)
    due = asked + timedelta(seconds=wanted)
    if due < now:
        # All of it has passed. Unless none was asked for, it is still for the node to confirm.
        due, wanted = now, min(wanted, 1)
    return _with_metadata(
        manifest, deletionTimestamp=timestamp(due), deletionGracePeriodSeconds=wanted
    )


def _grace(manifest: Manifest, wanted: int | None) -> int:
    """How long a pod may take. One that no node has, or that has ended, needs no time."""
    spec, status = manifest.get("spec", {}), manifest.get("status", {})
    if not spec.get("nodeName") or status.get("phase") in _ENDED:
        return 0
    usual: int = spec.get("terminationGracePeriodSeconds", 0)
    return usual if wanted is None else wanted


def _with_finalizers(manifest: Manifest, propagation: Propagation) -> Manifest:
    """Only who is deleted in the foreground waits for those it owns."""
    given = manifest["metadata"].get("finalizers", ())
    others = [each for each in given if each not in (FOREGROUND, _ORPHAN)]
    ours = [FOREGROUND] if propagation is Propagation.FOREGROUND else []
    return _with_metadata(manifest, finalizers=[*others, *ours])


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
