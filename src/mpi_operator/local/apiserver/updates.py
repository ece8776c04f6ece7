"""What is stored when somebody writes an object. Pure.

Some of an object is the cluster's: its place, its uid, its times, its versions. A writer may send
them, and has to where it wants to be sure that it changes what it has read; it cannot change them.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from mpi_operator.kube.errors import Cause
from mpi_operator.kube.resources import Manifest, Resource
from mpi_operator.local.times import timestamp

from . import api_errors
from .served_kinds import Kind

_OURS = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
# Kubernetes leaves these out where there is nothing in them.
_NO_EMPTY = ("labels", "annotations", "finalizers", "ownerReferences")


def new_object(
    kind: Kind, manifest: Manifest, namespace: str, name: str, uid: str, now: datetime
) -> Manifest:
    """The first version of an object."""
    metadata = {
        **_writable(manifest),
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "uid": uid,
        "creationTimestamp": timestamp(now),
        **({"generation": 1} if "spec" in manifest else {}),
    }
    left_out = ("metadata", "status") if kind.has_status else ("metadata",)
    rest = {field: value for field, value in manifest.items() if field not in left_out}
    return kind.admit({**_typed(kind.resource, rest), "metadata": metadata, **rest})


def changed(kind: Kind, known: Manifest, wanted: Manifest) -> Manifest:
    """The next version of an object, in all but its status where that is written apart."""
    check_preconditions(kind.resource, known, wanted)
    ours = {field: known["metadata"][field] for field in _OURS if field in known["metadata"]}
    rest = {field: value for field, value in wanted.items() if field != "metadata"}
    new = {**_typed(kind.resource, rest), "metadata": {**_writable(wanted), **ours}, **rest}
    if kind.has_status:
        new = _with_status(new, known.get("status"))
    _check_finalizers(kind.resource, known, new)
    return _counted(known, kind.admit(new))


def with_status(resource: Resource, known: Manifest, wanted: Manifest) -> Manifest:
    """The next version of an object, in nothing but its status."""
    check_preconditions(resource, known, wanted)
    return _with_status(known, wanted.get("status"))


def check_preconditions(resource: Resource, known: Manifest, wanted: Manifest) -> None:
    """Conflict where the writer means another object, or has not seen its last version."""
    have, want = known["metadata"], wanted.get("metadata") or {}
    name = have["name"]
    if want.get("name", name) != name:
        why = f"the name of the object ({want['name']}) does not match the name on the URL ({name})"
        raise api_errors.bad_request(why)
    if want.get("uid", have["uid"]) != have["uid"]:
        raise api_errors.another_uid(resource, name, want["uid"], have["uid"])
    if want.get("resourceVersion") not in (None, "", have["resourceVersion"]):
        raise api_errors.conflict(resource, name, api_errors.MODIFIED)


def merged(target: Any, patch: Any) -> Any:
    """A value under a merge patch (RFC 7386): what the patch names is set, null removes it."""
    if not isinstance(patch, Mapping):
        return patch
    base = target if isinstance(target, Mapping) else {}
    kept = {name: value for name, value in base.items() if name not in patch}
    changed = {
        name: merged(base.get(name), value) for name, value in patch.items() if value is not None
    }
    return kept | changed


def _typed(resource: Resource, manifest: Manifest) -> Manifest:
    """What kind of object it is, where the writer does not say; it must not say another one."""
    ours = {"apiVersion": resource.api_version, "kind": resource.kind}
    for field, expected in ours.items():
        given = manifest.get(field, expected)
        if given != expected:
            why = f"the {field} in the data ({given}) does not match the expected one ({expected})"
            raise api_errors.bad_request(why)
    return ours


def _writable(manifest: Manifest) -> Manifest:
    """The metadata that is a writer's to say."""
    return {
        field: value
        for field, value in (manifest.get("metadata") or {}).items()
        if field not in _OURS and (value or field not in _NO_EMPTY)
    }


def _with_status(manifest: Manifest, status: Any) -> Manifest:
    rest = {field: value for field, value in manifest.items() if field != "status"}
    return rest if status is None else {**rest, "status": status}


def _counted(known: Manifest, new: Manifest) -> Manifest:
    """With a generation that counts changes of the spec."""
    if new.get("spec") == known.get("spec"):
        return new
    generation = known["metadata"].get("generation", 0) + 1
    return {**new, "metadata": {**new["metadata"], "generation": generation}}


def _check_finalizers(resource: Resource, known: Manifest, new: Manifest) -> None:
    """Who is being deleted can be held by those only who held it before."""
    if "deletionTimestamp" not in known["metadata"]:
        return
    before, after = (set(each["metadata"].get("finalizers", ())) for each in (known, new))
    if extra := sorted(after - before):
        why = (
            "Forbidden: no new finalizers can be added if the object is being deleted, "
            f"found new finalizers {extra}"
        )
        cause = Cause("FieldValueForbidden", why, "metadata.finalizers")
        raise api_errors.invalid(resource, known["metadata"]["name"], [cause])
