"""Rewrites all stored MPIJobs in one API version.

A cluster stores a job in the version that was the storage version when it was last written. The CRD
remembers all of them in `status.storedVersions`, and a version in there cannot be removed from it.
So each job is written once, by an empty patch: the API server stores it in today's version, and
writes nothing if it is stored in that already. Then the status of the CRD lists that version only.

Nothing is lost if this is interrupted at any point, and running it again continues.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import msgspec

from mpi_operator.api.types import GROUP, KIND, PLURAL
from mpi_operator.kube import discovery, errors
from mpi_operator.kube.client import Page
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.objects import Object
from mpi_operator.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Key, Manifest, Resource

CRD = f"{PLURAL}.{GROUP}"
PAGE_SIZE = 500
_CONCURRENCY = 16
# Other API servers learn within seconds that the storage version has changed.
_PROPAGATION_SECONDS = 5.0
_PROPAGATION_LIMIT = 60.0
_MOST_LISTS = 10

_decode = msgspec.json.Decoder(Object).decode


class CannotMigrate(Exception):
    """The CRD does not allow a migration; the message says why."""


class Unfinished(Exception):
    """Something came between; to repeat the migration may help."""


@dataclass
class Progress:
    """What was done so far."""

    written: int = 0
    failed: dict[Key, str] = field(default_factory=dict)  # why a job could not be written


Say = Callable[[str], None]


async def migrate(
    client: HttpClient,
    version: str,
    say: Say,
    *,
    page_size: int = PAGE_SIZE,
    propagation_seconds: float = _PROPAGATION_SECONDS,
) -> Progress:
    """Store all jobs in a version. Unless some could not be written, record it in the CRD."""
    crd = await client.get(CUSTOM_RESOURCE_DEFINITIONS, CRD)
    if why := refusal(crd, version):
        raise CannotMigrate(why)
    if stored_versions(crd) == [version] == [storage_version(crd)]:
        say(f"All jobs are stored as {version} already, as {CRD} says")
        return Progress()
    if storage_version(crd) != version:
        say(f"Making {version} the storage version of {CRD}")
        await _store_as(client, crd, version, propagation_seconds)
    progress = await _write_all(client, version, say, page_size)
    if not progress.failed:
        await _record(client, version)
        say(f"{CRD} now has storedVersions: [{version}]")
    return progress


def refusal(crd: Manifest, version: str) -> str:
    """Why jobs cannot be migrated with this CRD; empty if they can."""
    served = [each["name"] for each in crd["spec"]["versions"] if each["served"]]
    if version not in served:
        return f"{CRD} does not serve {version}, only {', '.join(served)}"
    others = [each for each in stored_versions(crd) if each != version]
    conversion = (crd["spec"].get("conversion") or {}).get("strategy", "None")
    if (others or storage_version(crd) != version) and conversion != "Webhook":
        return (
            f"{CRD} is not this operator's: it has stored jobs as {', '.join(others) or version} "
            "and converts none of them, so fields would be lost. Install the operator with "
            "deploy/v2beta1/mpi-operator.yaml first"
        )
    return ""


def storage_version(crd: Manifest) -> str:
    """The version that jobs are written in."""
    [found] = [each["name"] for each in crd["spec"]["versions"] if each["storage"]]
    return str(found)


def stored_versions(crd: Manifest) -> list[str]:
    """The versions that stored jobs may have."""
    return list((crd.get("status") or {}).get("storedVersions") or ())


async def _store_as(
    client: HttpClient, crd: Manifest, version: str, propagation_seconds: float
) -> None:
    before = await _storage_hash(client, version)
    versions = [each | {"storage": each["name"] == version} for each in crd["spec"]["versions"]]
    change = _same(crd) | {"spec": {"versions": versions}}
    await client.patch(CUSTOM_RESOURCE_DEFINITIONS, CRD, change)
    async with asyncio.timeout(_PROPAGATION_LIMIT):
        while await _storage_hash(client, version) == before:  # noqa: ASYNC110 - the server's
            await asyncio.sleep(0.2)
    await asyncio.sleep(propagation_seconds)


async def _storage_hash(client: HttpClient, version: str) -> str:
    """What tells storage versions apart, as the API server publishes it."""
    found = await discovery.served(client, f"{GROUP}/{version}")
    hashes = (each.storage_version_hash for each in found if each.resource.plural == PLURAL)
    return next(hashes, "")


def jobs_of(number: int) -> str:
    """A number of jobs: `1 job`, `2 jobs`."""
    return "1 job" if number == 1 else f"{number} jobs"


async def _write_all(client: HttpClient, version: str, say: Say, page_size: int) -> Progress:
    resource, progress = Resource(GROUP, version, PLURAL, KIND), Progress()
    limit = asyncio.Semaphore(_CONCURRENCY)
    async for page in _pages(client, resource, page_size, say):
        jobs = [_decode(raw).metadata.key for raw in page.items]
        await asyncio.gather(*(_write(client, resource, job, limit, progress) for job in jobs))
        say(f"Wrote {jobs_of(progress.written)}, {len(progress.failed)} failed")
    return progress


async def _pages(
    client: HttpClient, resource: Resource, page_size: int, say: Say
) -> AsyncIterator[Page]:
    """All pages of a list; from the start again if the server has forgotten the list meanwhile."""
    for _ in range(_MOST_LISTS):
        try:
            async with aclosing(client.pages(resource, limit=page_size)) as pages:
                async for page in pages:
                    yield page
            return
        except errors.Gone:
            say("List expired, starting again")
    raise Unfinished("the list of jobs expired before it was read")


async def _write(
    client: HttpClient, resource: Resource, job: Key, limit: asyncio.Semaphore, progress: Progress
) -> None:
    async with limit:
        try:
            await client.patch(resource, job.name, {}, job.namespace)
        except errors.NotFound:
            progress.failed.pop(job, None)  # it was deleted meanwhile
        except errors.ApiError as error:
            progress.failed[job] = str(error)
        else:
            progress.failed.pop(job, None)
            progress.written += 1


async def _record(client: HttpClient, version: str) -> None:
    crd = await client.get(CUSTOM_RESOURCE_DEFINITIONS, CRD)
    if storage_version(crd) != version:
        raise Unfinished(
            f"the storage version of {CRD} was changed to {storage_version(crd)} meanwhile"
        )
    change: dict[str, Any] = _same(crd) | {"status": {"storedVersions": [version]}}
    await client.patch(CUSTOM_RESOURCE_DEFINITIONS, CRD, change, subresource="status")


def _same(crd: Manifest) -> Manifest:
    """The condition that the CRD has not been changed since it was read."""
    return {"metadata": {"resourceVersion": crd["metadata"]["resourceVersion"]}}
