"""One version of an object, as it is kept.

It is kept as bytes and decoded for each reader, so nobody can change the store by changing an
answer, and lists and watches hand the bytes on as they are. What selecting and garbage collection
ask of it is taken out once, when it is stored.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from mpi_operator.kube.client import decode_manifest
from mpi_operator.kube.resources import Key, Manifest

_encode = msgspec.json.Encoder().encode


class Owner(NamedTuple):
    """An owner reference."""

    group: str
    kind: str
    name: str
    uid: str
    is_blocking: bool  # the owner, deleted in the foreground, waits for this object


class Stored(msgspec.Struct, frozen=True):
    """An object at one version."""

    key: Key
    uid: str
    version: int
    labels: Mapping[str, str]
    fields: Mapping[str, str]
    owners: tuple[Owner, ...]
    finalizers: tuple[str, ...]
    is_deleting: bool
    raw: msgspec.Raw

    def manifest(self) -> Manifest:
        """The object, the caller's own."""
        return decode_manifest(self.raw)

    def at(self, version: int) -> msgspec.Raw:
        """The same with another version: how a watch tells of what is gone."""
        manifest = self.manifest()
        manifest["metadata"]["resourceVersion"] = str(version)
        return msgspec.Raw(_encode(manifest))


def stored(manifest: Manifest, version: int, fields: Iterable[str]) -> Stored:
    """An object as it is kept, with `fields` to select it by."""
    metadata = {**manifest["metadata"], "resourceVersion": str(version)}
    manifest = {**manifest, "metadata": metadata}
    return Stored(
        key=Key(metadata.get("namespace", ""), metadata["name"]),
        uid=metadata["uid"],
        version=version,
        labels=metadata.get("labels", {}),
        fields={path: _text(value_at(manifest, path)) for path in fields},
        owners=tuple(_owner(reference) for reference in metadata.get("ownerReferences", ())),
        finalizers=tuple(metadata.get("finalizers", ())),
        is_deleting="deletionTimestamp" in metadata,
        raw=msgspec.Raw(_encode(manifest)),
    )


def cleaned(value: Any) -> Any:
    """A copy without nulls in objects: to Kubernetes they are fields that are not there."""
    # Not Mapping: asking for that takes longer than all the rest.
    if isinstance(value, dict):
        return {name: cleaned(part) for name, part in value.items() if part is not None}
    if isinstance(value, list | tuple):
        return [cleaned(part) for part in value]
    return value


def value_at(manifest: Mapping[str, Any], path: str) -> Any:
    """What is at `spec.nodeName`; None where there is nothing."""
    found: Any = manifest
    for name in path.strip(".").split("."):
        if not isinstance(found, dict) or name not in found:
            return None
        found = found[name]
    return found


def _owner(reference: Mapping[str, Any]) -> Owner:
    group, _, _ = reference.get("apiVersion", "").rpartition("/")
    return Owner(
        group,
        reference.get("kind", ""),
        reference.get("name", ""),
        reference.get("uid", ""),
        bool(reference.get("blockOwnerDeletion")),
    )


def _text(value: Any) -> str:
    return "" if value is None else str(value)
