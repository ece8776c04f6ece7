"""Puts the objects of an installation onto a cluster, and takes them away again."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from enum import StrEnum
from typing import NamedTuple

from mpi_operator.api.crd import v2beta1_only
from mpi_operator.cli.command_errors import CommandError
from mpi_operator.install.deployment import OWN_NAMESPACE
from mpi_operator.install.installation import LABELS, NAME, Installation
from mpi_operator.install.installed_kinds import resource_of
from mpi_operator.kube import errors
from mpi_operator.kube.client import Selector
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    NAMESPACES,
    Manifest,
)

_SECONDS = 0.5  # between two reads
_MANAGER = "mpijob"
_CRD = "mpijobs.kubeflow.org"
_MANAGED_BY = "app.kubernetes.io/managed-by"
# What every write changes, whether or not it changes the object.
_BOOKKEEPING = ("managedFields", "resourceVersion")


class Effect(StrEnum):
    """What a write did, or would do."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    DELETED = "deleted"


class Change(NamedTuple):
    """One object, and what became of it."""

    effect: Effect
    manifest: Manifest

    def __str__(self) -> str:
        metadata = self.manifest["metadata"]
        where = f" in {metadata['namespace']}" if metadata.get("namespace") else ""
        return f"{self.effect:<9} {self.manifest['kind']} {metadata['name']}{where}"


async def apply(
    client: HttpClient, objects: Iterable[Manifest], *, is_dry_run: bool = False
) -> AsyncIterator[Change]:
    """Apply objects one after the other: later ones need earlier ones."""
    created: set[str] = set()  # namespaces that a dry run does not create
    for each in objects:
        if is_dry_run and each["metadata"].get("namespace") in created:
            yield Change(Effect.CREATED, each)
            continue
        before = await _found(client, each)
        after = await client.apply(
            resource_of(each), each, manager=_MANAGER, force=True, is_dry_run=is_dry_run
        )
        if before is None and each["kind"] == NAMESPACES.kind:
            created.add(each["metadata"]["name"])
        yield Change(_effect(before, after), each)


async def delete(client: HttpClient, objects: Iterable[Manifest]) -> AsyncIterator[Change]:
    """Delete the objects that exist, in the given order."""
    for each in objects:
        resource = resource_of(each)
        key = resource.key_of(each)
        try:
            await client.delete(resource, key.name, key.namespace)
        except errors.NotFound:
            continue
        yield Change(Effect.DELETED, each)


async def are_gone(client: HttpClient, objects: Iterable[Manifest], seconds: float) -> bool:
    """Wait until deleted objects are gone: namespaces and CRDs take their time."""
    left = [*objects]
    try:
        async with asyncio.timeout(seconds):
            while left:
                left = [each for each in left if await _found(client, each)]
                await asyncio.sleep(_SECONDS if left else 0)
    except TimeoutError:
        return False
    return True


async def without_webhooks(client: HttpClient) -> Change | None:
    """Make the CRD work without an operator: with v2beta1 only, the version that is stored."""
    try:
        found = await client.get(CUSTOM_RESOURCE_DEFINITIONS, _CRD)
    except errors.NotFound:
        return None
    if found["spec"]["conversion"]["strategy"] == "None":
        return None
    found["spec"] = v2beta1_only()["spec"]
    try:
        await client.replace(CUSTOM_RESOURCE_DEFINITIONS, found)
    except errors.Invalid as error:
        raise CommandError(
            f"jobs are still stored in an old API version: {error}",
            "mpi-operator migrate-storage  # rewrites them; then try again",
        ) from error
    return Change(Effect.CHANGED, found)


async def installed_in(client: HttpClient) -> list[Manifest]:
    """The Deployments of operators in all namespaces."""
    listing = await client.list(
        DEPLOYMENTS, selector=Selector(labels=f"app.kubernetes.io/name={NAME}")
    )
    return listing.items


def installation_of(found: Iterable[Manifest], namespace: str) -> Installation:
    """What kind of installation is in a namespace: one for that namespace, or for all."""
    flags = (
        container.get("args") or ()
        for each in found
        if each["metadata"]["namespace"] == namespace
        for container in each["spec"]["template"]["spec"]["containers"]
    )
    return Installation(namespace, is_namespaced=any(OWN_NAMESPACE in each for each in flags))


async def is_our_namespace(client: HttpClient, chosen: Installation) -> bool:
    """Whether the namespace was made for the operator, and may be deleted with it."""
    try:
        found = await client.get(NAMESPACES, chosen.namespace)
    except errors.NotFound:
        return False
    return LABELS.items() <= (found["metadata"].get("labels") or {}).items()


def is_of_helm(manifest: Manifest) -> bool:
    """Whether Helm installed an object, and would not expect others to change it."""
    return bool((manifest["metadata"].get("labels") or {}).get(_MANAGED_BY) == "Helm")


async def _found(client: HttpClient, manifest: Manifest) -> Manifest | None:
    resource = resource_of(manifest)
    key = resource.key_of(manifest)
    try:
        return await client.get(resource, key.name, key.namespace)
    except errors.NotFound:
        return None


def _effect(before: Manifest | None, after: Manifest) -> Effect:
    if before is None:
        return Effect.CREATED
    return Effect.UNCHANGED if _content(before) == _content(after) else Effect.CHANGED


def _content(manifest: Manifest) -> Manifest:
    metadata = {
        name: value for name, value in manifest["metadata"].items() if name not in _BOOKKEEPING
    }
    return {**manifest, "metadata": metadata, "status": None}
