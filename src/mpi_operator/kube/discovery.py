"""Discovery: the version of a server, its API groups, and the kinds that it serves."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from . import errors
from .http import HttpClient
from .resources import Resource

T = TypeVar("T")


class _Version(msgspec.Struct, rename="camel"):
    git_version: str


class _CoreVersions(msgspec.Struct):
    versions: list[str]


class _GroupVersion(msgspec.Struct, rename="camel"):
    group_version: str


class _Group(msgspec.Struct, rename="camel"):
    versions: list[_GroupVersion]
    preferred_version: _GroupVersion


class _Groups(msgspec.Struct):
    groups: list[_Group]


class _Entry(msgspec.Struct, rename="camel"):
    name: str
    kind: str
    namespaced: bool
    storage_version_hash: str = ""


class _Entries(msgspec.Struct):
    resources: list[_Entry] | None = None  # Go writes empty lists as null


_decode_version = msgspec.json.Decoder(_Version).decode
_decode_core_versions = msgspec.json.Decoder(_CoreVersions).decode
_decode_groups = msgspec.json.Decoder(_Groups).decode
_decode_entries = msgspec.json.Decoder(_Entries).decode


@dataclass(frozen=True)
class Served:
    """A kind that the server serves."""

    resource: Resource
    storage_version_hash: str = ""  # another one means another storage version


async def server_version(client: HttpClient) -> str:
    """Such as `v1.36.4`."""
    return (await _answer(client, "/version", _decode_version)).git_version


async def api_versions(client: HttpClient) -> list[str]:
    """Such as `v1` and `batch/v1`, the preferred version first within each group."""
    core = (await _answer(client, "/api", _decode_core_versions)).versions
    groups = (await _answer(client, "/apis", _decode_groups)).groups
    return [*core, *(version for group in groups for version in _preferred_first(group))]


async def served(client: HttpClient, api_version: str) -> list[Served]:
    """The kinds of one API version; none if the server does not know it."""
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    try:
        entries = (await _answer(client, root, _decode_entries)).resources or []
    except errors.NotFound:
        return []
    # The others, such as `jobs/status`, are subresources.
    return [_served(api_version, entry) for entry in entries if "/" not in entry.name]


def _served(api_version: str, entry: _Entry) -> Served:
    group, _, version = api_version.rpartition("/")
    resource = Resource(group, version, entry.name, entry.kind, namespaced=entry.namespaced)
    return Served(resource, entry.storage_version_hash)


def _preferred_first(group: _Group) -> list[str]:
    preferred = group.preferred_version.group_version
    versions = [each.group_version for each in group.versions]
    return [preferred, *(version for version in versions if version != preferred)]


async def _answer(client: HttpClient, path: str, decode: Callable[[bytes], T]) -> T:
    body = await client.raw(path)
    try:
        return decode(body)
    except errors.MALFORMED as error:
        raise errors.Undecodable(
            f"get {path}: the response does not conform to the Kubernetes API: {error}"
        ) from error
