"""One version of an object, as the object store keeps it.

It is kept as bytes and decoded for each reader, so no reader can change the store by changing an
answer, and lists and watches pass the bytes on unchanged. What selectors and the garbage collector
need is extracted once, when the object is stored.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from mpi_operator.kube.client import decode_manifest
from mpi_operator.kube.resources import Key, Manifest

_encode = msgspec.json.Encoder().encode


class OwnerReference(NamedTuple):
    """An entry of `metadata.ownerReferences`, without the API version."""

    group: str
    kind: str
    name: str
    uid: str
    blocks_deletion: bool  # a foreground deletion of the owner waits for this object


class StoredObject(msgspec.Struct, frozen=True):
    """An object at one version."""

    key: Key
    uid: str
    version: int
    labels: Mapping[str, str]
    fields: Mapping[str, str]
    owners: tuple[OwnerReference, ...]
    finalizers: tuple[str, ...]
    is_deleting: bool
    raw: msgspec.Raw

    def manifest(self) -> Manifest:
        """A decoded copy that the caller may change."""
        return decode_manifest(self.raw)

    def at(self, version: int) -> msgspec.Raw:
        """The same object with another resourceVersion, for a DELETED event."""
        manifest = self.manifest()
        manifest["metadata"]["resourceVersion"] = str(version)
        return msgspec.Raw(_encode(manifest))


def encode_object(manifest: Manifest, version: int, fields: Iterable[str]) -> StoredObject:
    """The stored form of a manifest; `fields` are the paths that field selectors can use."""
    metadata = {**manifest["metadata"], "resourceVersion": str(version)}
    manifest = {**manifest, "metadata": metadata}
    return StoredObject(
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


def without_nulls(value: Any) -> Any:
    """A copy without null fields, which to Kubernetes are the same as absent ones."""
    # Not Mapping: that isinstance check takes longer than all the rest.
    if isinstance(value, dict):
        return {name: without_nulls(part) for name, part in value.items() if part is not None}
    if isinstance(value, list | tuple):
        return [without_nulls(part) for part in value]
    return value


def value_at(manifest: Mapping[str, Any], path: str) -> Any:
    """The value at a path such as `spec.nodeName`, or None."""
    found: Any = manifest
    for name in path.strip(".").split("."):
        if not isinstance(found, dict) or name not in found:
            return None
        found = found[name]
    return found


def _owner(reference: Mapping[str, Any]) -> OwnerReference:
    group, _, _ = reference.get("apiVersion", "").rpartition("/")
    return OwnerReference(
        group,
        reference.get("kind", ""),
        reference.get("name", ""),
        reference.get("uid", ""),
        bool(reference.get("blockOwnerDeletion")),
    )


def _text(value: Any) -> str:
    return "" if value is None else str(value)
