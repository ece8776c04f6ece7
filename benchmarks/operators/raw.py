"""How fast this API server creates pods at all: plain POSTs with bare aiohttp."""

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
_SET_BY_SERVER = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation")


def bodies(made: Iterable[Manifest], namespace: str, owner: str) -> list[bytes]:
    """The request bodies for pods like those that an operator created.

    `owner` is the UID of a job in the namespace; without it the garbage collector deletes the pods.
    """
    return [json.dumps(_request(pod, namespace, owner)).encode() for pod in made]


def _request(pod: Manifest, namespace: str, owner: str) -> Manifest:
    metadata = {key: value for key, value in pod["metadata"].items() if key not in _SET_BY_SERVER}
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
    """Without the token that admission added: it will add it again."""
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
    """Create these pods with limited concurrency."""
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
        # Open the connections first: those of an operator are open, too.
        await asyncio.gather(
            *(_open_connection(session, settings.server) for _ in range(CONCURRENCY))
        )
        yield session, settings.server


async def _open_connection(session: aiohttp.ClientSession, server: str) -> None:
    async with session.get(f"{server}/version") as response:
        await response.read()
