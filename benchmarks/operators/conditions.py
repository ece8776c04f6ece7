"""Waiting until jobs have come somewhere, with one watch for all of them."""

import asyncio
from contextlib import aclosing

import msgspec

from benchmarks.operators.jobs import MPIJOBS
from mpi_operator.kube import errors
from mpi_operator.kube.http import HttpClient


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
    client: HttpClient, namespace: str, condition: str, count: int, seconds: float
) -> None:
    """Return when so many jobs of a namespace have had a condition; TimeoutError if not in time."""
    arrived: set[str] = set()
    try:
        async with asyncio.timeout(seconds):
            while len(arrived) < count:
                await _follow(client, namespace, condition, count, arrived)
    except TimeoutError:
        raise TimeoutError(
            f"{len(arrived)} of {count} jobs were {condition} after {seconds:.0f} s"
        ) from None


async def _follow(
    client: HttpClient, namespace: str, condition: str, count: int, arrived: set[str]
) -> None:
    """One watch, until it ends or all are there."""
    events = client.watch(MPIJOBS, namespace, resource_version="0")
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
