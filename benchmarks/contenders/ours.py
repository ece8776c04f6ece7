"""`mpi_operator.kube`."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager

import msgspec

from benchmarks.measure import Cost, Task, timed, traced
from benchmarks.pods import worker_pod
from mpi_operator.kube import config
from mpi_operator.kube.cache import Cache
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.objects import Pod
from mpi_operator.kube.resources import PODS

_decode = msgspec.json.Decoder(Pod).decode


def create(task: Task) -> Cost:
    return asyncio.run(_create(task))


def list_pods(task: Task) -> Cost:
    return asyncio.run(_list(task))


def watch(task: Task) -> Cost:
    return asyncio.run(_watch(task))


def cache(task: Task) -> Cost:
    return asyncio.run(_cache(task))


@asynccontextmanager
async def _client(task: Task) -> AsyncIterator[HttpClient]:
    settings = config.load(kubeconfig=task.kubeconfig)
    async with HttpClient(settings, concurrency=task.concurrency) as client:
        yield client


async def _create(task: Task) -> Cost:
    cost = Cost()
    async with _client(task) as client:

        async def create_one(index: int) -> None:
            await client.create(PODS, worker_pod(task.namespace, "ours", index))

        await at_once(create_one, range(task.concurrency), task.concurrency)
        with timed(cost, task.count):
            await at_once(
                create_one, range(task.concurrency, task.concurrency + task.count), task.concurrency
            )
    return cost


async def _list(task: Task) -> Cost:
    cost = Cost()
    async with _client(task) as client:
        with timed(cost, task.count):
            pods = [
                _decode(raw)
                async for page in client.pages(PODS, task.namespace)
                for raw in page.items
            ]
    assert len(pods) == task.count
    return cost


async def _watch(task: Task) -> Cost:
    cost = Cost()
    async with _client(task) as client:
        events = client.watch(PODS, task.namespace, resource_version="0")
        async with aclosing(events):
            pods: list[Pod] = []
            with timed(cost, task.count):
                while len(pods) < task.count:
                    pods.append(_decode((await anext(events)).raw))
    return cost


async def _cache(task: Task) -> Cost:
    """What an informer keeps, index and all, without the connection it comes over."""
    cost = Cost(count=task.count)
    async with _client(task) as client:
        pages = [page async for page in client.pages(PODS, task.namespace)]
    with traced(cost):
        kept = Cache(
            PODS, Pod, indexes={"owner": lambda pod: [pod.metadata.owner_references[0].uid]}
        )
        for page in pages:
            for raw in page.items:
                kept.saw(raw)
        gc.collect()
    assert len(kept.store) == task.count
    return cost


async def at_once(do: Callable[[int], Awaitable[None]], indexes: range, concurrency: int) -> None:
    """Do it for each index, so many at a time."""
    waiting = iter(indexes)

    async def work() -> None:
        for index in waiting:
            await do(index)

    await asyncio.gather(*(work() for _ in range(concurrency)))
