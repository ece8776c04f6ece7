"""ConfigMaps and Secrets, as the things that are set by them see them: keys with bytes."""

from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from mpi_operator.kube.resources import CONFIG_MAPS, SECRETS, Manifest, Resource

# Reads an object of the pod's namespace; None where there is none.
Lookup: TypeAlias = Callable[[Resource, str], Awaitable[Manifest | None]]


class Missing(Exception):
    """Something that the pod needs is not there (yet)."""


async def keys_of(
    lookup: Lookup, resource: Resource, name: str, *, optional: bool
) -> Mapping[str, bytes]:
    """What a ConfigMap or Secret holds; nothing if it is optional and missing."""
    found = await lookup(resource, name)
    if found is None:
        if optional:
            return {}
        raise Missing(f"{_WORDS[resource.kind]} {name!r} is not there")
    return contents(resource, found)


def contents(resource: Resource, manifest: Manifest) -> dict[str, bytes]:
    """The keys of an object, decoded."""
    data = manifest.get("data") or {}
    if resource == SECRETS:
        plain = {
            key: str(value).encode() for key, value in (manifest.get("stringData") or {}).items()
        }
        return {key: b64decode(value) for key, value in data.items()} | plain
    binary = manifest.get("binaryData") or {}
    return {key: str(value).encode() for key, value in data.items()} | {
        key: b64decode(value) for key, value in binary.items()
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
    raise Missing(f"{_WORDS[resource.kind]} {name!r} has no key {key!r}")


_WORDS = {CONFIG_MAPS.kind: "ConfigMap", SECRETS.kind: "Secret"}
