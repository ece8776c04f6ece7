"""The object that a create, update or patch request stores. Pure.

Some metadata belongs to the server: name, UID, timestamps, versions. A client may send it, and does
so to be sure that it changes what it has read, but cannot change it.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from mpi_operator.kube.errors import Cause
from mpi_operator.kube.resources import Manifest, Resource
from mpi_operator.local.times import timestamp

from . import api_errors
from .served_kinds import Kind

_SERVER_FIELDS = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_OMIT_EMPTY = ("labels", "annotations", "finalizers", "ownerReferences")


def new_object(
    kind: Kind, manifest: Manifest, namespace: str, name: str, uid: str, now: datetime
) -> Manifest:
    """The first version of an object."""
    metadata = {
        **_client_metadata(manifest),
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "uid": uid,
        "creationTimestamp": timestamp(now),
        **({"generation": 1} if "spec" in manifest else {}),
    }
    left_out = ("metadata", "status") if kind.has_status else ("metadata",)
    rest = {field: value for field, value in manifest.items() if field not in left_out}
    return kind.admit({**_type_meta(kind.resource, rest), "metadata": metadata, **rest})


def updated(kind: Kind, stored: Manifest, wanted: Manifest) -> Manifest:
    """The next version of an object; its status stays if that is a subresource."""
    check_preconditions(kind.resource, stored, wanted)
    metadata = stored["metadata"]
    kept = {field: metadata[field] for field in _SERVER_FIELDS if field in metadata}
    rest = {field: value for field, value in wanted.items() if field != "metadata"}
    metadata = {**_client_metadata(wanted), **kept}
    new = {**_type_meta(kind.resource, rest), "metadata": metadata, **rest}
    if kind.has_status:
        new = _with_status(new, stored.get("status"))
    _check_finalizers(kind.resource, stored, new)
    return _with_generation(stored, kind.admit(new))


def status_updated(resource: Resource, stored: Manifest, wanted: Manifest) -> Manifest:
    """The next version of an object, with a new status and nothing else changed."""
    check_preconditions(resource, stored, wanted)
    return _with_status(stored, wanted.get("status"))


def merge_patch(target: Any, patch: Any) -> Any:
    """`target` with a merge patch (RFC 7386) applied: null removes a field, the rest is set."""
    if not isinstance(patch, Mapping):
        return patch
    base = target if isinstance(target, Mapping) else {}
    kept = {name: value for name, value in base.items() if name not in patch}
    changed = {
        name: merge_patch(base.get(name), value)
        for name, value in patch.items()
        if value is not None
    }
    return kept | changed


def check_preconditions(resource: Resource, stored: Manifest, wanted: Manifest) -> None:
    """Raise Conflict if the client means another object, or has not seen the latest version."""
    have, want = stored["metadata"], wanted.get("metadata") or {}
    name = have["name"]
    if want.get("name", name) != name:
        why = f"the name of the object ({want['name']}) does not match the name on the URL ({name})"
        raise api_errors.bad_request(why)
    if want.get("uid", have["uid"]) != have["uid"]:
        uids = f"UID in precondition: {want['uid']}, UID in object meta: {have['uid']}"
        raise api_errors.conflict(resource, name, f"Precondition failed: {uids}")
    if want.get("resourceVersion") not in (None, "", have["resourceVersion"]):
        raise api_errors.conflict(resource, name, api_errors.MODIFIED)


def _type_meta(resource: Resource, manifest: Manifest) -> Manifest:
    """`apiVersion` and `kind`, which a manifest may omit but not contradict."""
    expected = {"apiVersion": resource.api_version, "kind": resource.kind}
    for field, label in (("apiVersion", "API version"), ("kind", "kind")):
        given = manifest.get(field, expected[field])
        if given != expected[field]:
            raise api_errors.bad_request(
                f"the {label} in the data ({given}) does not match the expected {label} "
                f"({expected[field]})"
            )
    return expected


def _client_metadata(manifest: Manifest) -> Manifest:
    """The metadata that a client may set. As on Kubernetes, empty maps and lists are left out."""
    metadata = manifest.get("metadata") or {}
    for field in ("labels", "annotations"):
        if not all(isinstance(value, str) for value in (metadata.get(field) or {}).values()):
            raise api_errors.bad_request(f"the values of metadata.{field} must be strings")
    return {
        field: value
        for field, value in metadata.items()
        if field not in _SERVER_FIELDS and (value or field not in _OMIT_EMPTY)
    }


def _with_status(manifest: Manifest, status: Any) -> Manifest:
    rest = {field: value for field, value in manifest.items() if field != "status"}
    return rest if status is None else {**rest, "status": status}


def _with_generation(stored: Manifest, new: Manifest) -> Manifest:
    """The new version, with a higher generation if its spec differs."""
    if new.get("spec") == stored.get("spec"):
        return new
    generation = stored["metadata"].get("generation", 0) + 1
    return {**new, "metadata": {**new["metadata"], "generation": generation}}


def _check_finalizers(resource: Resource, stored: Manifest, new: Manifest) -> None:
    """Raise Invalid if a deleted object would get another finalizer."""
    if "deletionTimestamp" not in stored["metadata"]:
        return
    before, after = (set(each["metadata"].get("finalizers", ())) for each in (stored, new))
    if added := sorted(after - before):
        names = ", ".join(f'"{each}"' for each in added)
        why = (
            "Forbidden: no new finalizers can be added if the object is being deleted, "
            f"found new finalizers []string{{{names}}}"
        )
        cause = Cause("FieldValueForbidden", why, "metadata.finalizers")
        raise api_errors.invalid(resource, stored["metadata"]["name"], [cause])
