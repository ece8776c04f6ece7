"""`mpi_operator.kube`, used as in a controller: objects that it reads go to a cache."""

import gc
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

from benchmarks.measure import Cost, Task, at_once, timed, traced
from benchmarks.pods import worker_pods
from mpi_operator.kube import config
from mpi_operator.kube.cache import Cache
from mpi_operator.kube.client import WatchOptions
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.objects import Pod
from mpi_operator.kube.resources import PODS, Manifest


async def create(task: Task) -> Cost:
    cost = Cost()
    first, rest = worker_pods(task, "ours")
    async with _client(task) as client:

        async def create_one(pod: Manifest) -> None:
            await client.create(PODS, pod)

        await at_once(create_one, first, task.concurrency)
        with timed(cost, task.count):
            await at_once(create_one, rest, task.concurrency)
    return cost


async def list_pods(task: Task) -> Cost:
    cost, kept = Cost(), _cache()
    async with _client(task) as client:
        with timed(cost, task.count):
            async for page in client.pages(PODS, task.namespace):
                for raw in page.items:
                    kept.saw(raw)
    assert len(kept.store) == task.count
    return cost


async def watch(task: Task) -> Cost:
    cost, kept = Cost(), _cache()
    async with _client(task) as client:
        events = client.watch(PODS, task.namespace, WatchOptions(resource_version="0"))
        async with aclosing(events):
            with timed(cost, task.count):
                for _ in range(task.count):
                    kept.saw((await anext(events)).raw)
    assert len(kept.store) == task.count
    return cost


async def cache(task: Task) -> Cost:
    """The memory of an informer with its index, without the connection."""
    cost = Cost(count=task.count)
    async with _client(task) as client:
        pages = [page async for page in client.pages(PODS, task.namespace)]
    with traced(cost):
        kept = _cache()
        for page in pages:
            for raw in page.items:
                kept.saw(raw)
        gc.collect()
    assert len(kept.store) == task.count
    return cost


@asynccontextmanager
async def _client(task: Task) -> AsyncIterator[HttpClient]:
    settings = config.load(kubeconfig=task.kubeconfig)
    async with HttpClient(settings, concurrency=task.concurrency) as client:
        yield client


def _cache() -> Cache[Pod]:
    return Cache(PODS, Pod, indexes={"owner": _owners})


def _owners(pod: Pod) -> list[str]:
    return [owner.uid for owner in pod.metadata.owner_references]
