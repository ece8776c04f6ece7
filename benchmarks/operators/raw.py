"""How fast this API server makes pods at all: plain POSTs by bare aiohttp, and nothing around."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from benchmarks.measure import at_once
from mpi_operator.kube import config
from mpi_operator.kube.resources import PODS, Manifest

USER = "plain-posts"
CONCURRENCY = 64
_SERVER_S = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation")


def bodies(made: Iterable[Manifest], namespace: str, owner: str) -> list[bytes]:
    """What has to be posted to get pods like those that an operator made.

    `owner` is the uid of a job in the namespace, or else the pods would be collected as garbage.
    """
    return [json.dumps(_as_asked(pod, namespace, owner)).encode() for pod in made]


def _as_asked(pod: Manifest, namespace: str, owner: str) -> Manifest:
    metadata = {key: value for key, value in pod["metadata"].items() if key not in _SERVER_S}
    owners = [{**each, "uid": owner} for each in metadata.get("ownerReferences", [])]
    spec = {
        key: value
        for key, value in pod["spec"].items()
        if key not in ("volumes", "tolerations", "containers")
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "namespace": namespace, "ownerReferences": owners},
        "spec": {**spec, **_without_token(pod["spec"])},
    }


def _without_token(spec: dict[str, Any]) -> dict[str, Any]:
    """What admission has added (a token, tolerations) is added again, so nobody asks for it."""
    added = {each["name"] for each in spec.get("volumes", []) if "projected" in each}
    return {
        "volumes": [each for each in spec.get("volumes", []) if each["name"] not in added],
        "containers": [
            {
                **each,
                "volumeMounts": [
                    mount for mount in each.get("volumeMounts", []) if mount["name"] not in added
                ],
            }
            for each in spec["containers"]
        ],
    }


async def post(kubeconfig: str, namespace: str, pods: Sequence[bytes]) -> None:
    """Make these pods, so many at a time."""
    async with _session(kubeconfig) as (session, server):
        url = f"{server}{PODS.collection_path(namespace)}"

        async def post_one(body: bytes) -> None:
            async with session.post(url, data=body) as response:
                answer = await response.read()
                if response.status != 201:
                    raise RuntimeError(f"POST {url}: {response.status} {answer.decode()}")

        await at_once(post_one, pods, CONCURRENCY)


@asynccontextmanager
async def _session(kubeconfig: str) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    settings = config.load(kubeconfig=kubeconfig)
    context = settings.ssl_context((await settings.credentials.current()).certificate)
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        # Connections that are there already, as those of an operator are.
        await asyncio.gather(*(_knock(session, settings.server) for _ in range(CONCURRENCY)))
        yield session, settings.server


async def _knock(session: aiohttp.ClientSession, server: str) -> None:
    async with session.get(f"{server}/version") as response:
        await response.read()
