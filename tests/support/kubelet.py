"""A server that answers the API server like a kubelet, for logs only."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from devcluster.control_plane import ControlPlane
from devcluster.pki import Pki
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import NODES, Manifest
from tests.support.listener import listening

LogHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def pod(name: str, namespace: str, **spec: object) -> Manifest:
    container = {"name": "main", "image": "example.com/none:1"}
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [container], "automountServiceAccountToken": False, **spec},
    }


@asynccontextmanager
async def kubelet(
    client: HttpClient, control_plane: ControlPlane, logs: LogHandler
) -> AsyncIterator[str]:
    """A node that only serves logs; its name."""
    application = web.Application()
    application.router.add_get("/containerLogs/{namespace}/{pod}/{container}", logs)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving = Pki(control_plane.directory / "pki").pair("serving")
    context.load_cert_chain(serving.certificate, serving.key)
    async with listening(application, context, shutdown_timeout=1) as port:
        created = await client.create(NODES, {"metadata": {"generateName": "kubelet-"}})
        node = created["metadata"]["name"]
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        }
        await client.patch(NODES, node, {"status": status}, subresource="status")
        try:
            yield node
        finally:
            await client.delete(NODES, node)
