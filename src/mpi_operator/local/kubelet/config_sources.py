"""What the variables and volumes of a pod are made from: ConfigMaps, Secrets, the pod itself."""

from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

import msgspec

from mpi_operator.kube.resources import SECRETS, Manifest, Resource

# Reads an object of the pod's namespace; None if it does not exist.
Lookup: TypeAlias = Callable[[Resource, str], Awaitable[Manifest | None]]


class Missing(Exception):
    """Something that the pod needs does not exist (yet)."""


class Sources(msgspec.Struct, frozen=True):
    """What the variables and volumes of a pod may refer to."""

    pod: Manifest
    lookup: Lookup
    machine: Mapping[str, str]
    """The resources of the machine: cpu, memory."""


async def keys_of(
    lookup: Lookup, resource: Resource, name: str, *, optional: bool
) -> Mapping[str, bytes]:
    """The contents of a ConfigMap or Secret; empty if it is optional and missing."""
    found = await lookup(resource, name)
    if found is not None:
        return contents(resource, found)
    if optional:
        return {}
    raise Missing(f'{resource.kind.lower()} "{name}" not found')


def contents(resource: Resource, manifest: Manifest) -> dict[str, bytes]:
    """The keys of an object, decoded."""
    data = manifest.get("data") or {}
    plain, encoded = manifest.get("stringData") or {}, data
    if resource != SECRETS:
        plain, encoded = data, manifest.get("binaryData") or {}
    return {key: b64decode(value) for key, value in encoded.items()} | {
        key: str(value).encode() for key, value in plain.items()
    }


async def value_of(lookup: Lookup, resource: Resource, reference: Manifest) -> str | None:
    """One key as text; None if it is optional and missing."""
    optional = bool(reference.get("optional"))
    name, key = reference.get("name") or "", reference["key"]
    held = await keys_of(lookup, resource, name, optional=optional)
    if key in held:
        return held[key].decode(errors="surrogateescape")
    if optional:
        return None
    raise no_key(resource, name, key)


def no_key(resource: Resource, name: str, key: str) -> Missing:
    """The error for a key that an object does not have, in the words of a kubelet."""
    return Missing(f"couldn't find key {key} in {resource.kind} {name}")
