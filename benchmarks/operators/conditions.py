"""Waits until jobs have a condition, with one watch for all of them."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

import msgspec

from benchmarks.measure import at_once
from benchmarks.operators.jobs import MPIJOBS
from mpi_operator.kube import errors
from mpi_operator.kube.client import WatchOptions
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import Manifest, Resource


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct, frozen=True):
    conditions: list[_Condition] | None = None


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""


class _Job(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    status: _Status = _Status()


_decode = msgspec.json.Decoder(_Job).decode


async def until_jobs(
    client: HttpClient,
    namespace: str,
    condition: str,
    count: int,
    seconds: float,
    resource: Resource = MPIJOBS,
) -> None:
    """Wait until `count` jobs of a namespace have had a condition."""
    arrived: set[str] = set()
    try:
        async with asyncio.timeout(seconds):
            while len(arrived) < count:
                await _follow(client, resource, namespace, condition, count, arrived)
    except TimeoutError:
        raise TimeoutError(
            f"{len(arrived)} of {count} jobs were {condition} after {seconds:.0f} s"
        ) from None


async def submit_until(
    client: HttpClient, jobs: Sequence[Manifest], condition: str, seconds: float
) -> None:
    """Submit jobs of one namespace together, and wait until all have had a condition."""

    async def submit(job: Manifest) -> None:
        await client.create(MPIJOBS, job)

    arrived = until_jobs(client, jobs[0]["metadata"]["namespace"], condition, len(jobs), seconds)
    await asyncio.gather(arrived, at_once(submit, jobs, 32))


async def _follow(
    client: HttpClient,
    resource: Resource,
    namespace: str,
    condition: str,
    count: int,
    arrived: set[str],
) -> None:
    """Watch until the watch ends or all have arrived."""
    events = client.watch(resource, namespace, WatchOptions(resource_version="0"))
    try:
        async with aclosing(events):
            async for event in events:
                job = _decode(event.raw)
                if _has(job, condition):
                    arrived.add(job.metadata.name)
                if len(arrived) >= count:
                    return
    except (errors.Gone, errors.ConnectionLost):
        return


def _has(job: _Job, condition: str) -> bool:
    found = job.status.conditions or []
    return any((each.type, each.status) == (condition, "True") for each in found)
