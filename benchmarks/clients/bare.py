"""Bare aiohttp: the least that a client can do."""

import gc
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from benchmarks.measure import Cost, Task, at_once, timed, traced
from benchmarks.pods import worker_pods
from mpi_operator.kube import config


@asynccontextmanager
async def _session(task: Task) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    settings = config.load(kubeconfig=task.kubeconfig)
    context = settings.ssl_context((await settings.credentials.current()).certificate)
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    pods = f"{settings.server}/api/v1/namespaces/{task.namespace}/pods"
    headers = {"Accept-Encoding": "identity"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        yield session, pods


async def create(task: Task) -> Cost:
    cost = Cost()
    first, rest = worker_pods(task, "bare")
    async with _session(task) as (session, pods):

        async def create_one(pod: dict[str, Any]) -> None:
            body = json.dumps(pod).encode()
            headers = {"Content-Type": "application/json"}
            async with session.post(pods, data=body, headers=headers) as response:
                assert response.status == 201
                json.loads(await response.read())

        await at_once(create_one, first, task.concurrency)
        with timed(cost, task.count):
            await at_once(create_one, rest, task.concurrency)
    return cost


async def list_pods(task: Task) -> Cost:
    cost = Cost()
    async with _session(task) as (session, pods):
        with timed(cost, task.count):
            async with session.get(pods) as response:
                listed = json.loads(await response.read())
    assert len(listed["items"]) == task.count
    return cost


async def watch(task: Task) -> Cost:
    cost = Cost()
    async with _session(task) as (session, pods):
        query = {"watch": "true", "resourceVersion": "0"}
        async with session.get(pods, params=query) as response:
            objects: list[Any] = []
            with timed(cost, task.count):
                while len(objects) < task.count:
                    objects.append(json.loads(await response.content.readline())["object"])
    return cost


async def cache(task: Task) -> Cost:
    cost = Cost(count=task.count)
    async with _session(task) as (session, pods), session.get(pods) as response:
        body = await response.read()
    with traced(cost):
        kept = {each["metadata"]["name"]: each for each in json.loads(body)["items"]}
        gc.collect()
    assert len(kept) == task.count
    return cost
