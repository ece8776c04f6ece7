"""A metrics API with one figure, for autoscalers (external.metrics.k8s.io)."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from aiohttp import web

from devcluster.cluster import Cluster
from devcluster.pki import Pki
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import SERVICES, Manifest, Resource
from tests.support.listener import listening

_GROUP, _VERSION = "external.metrics.k8s.io", "v1beta1"
_API = f"{_GROUP}/{_VERSION}"
_API_SERVICES = Resource(
    "apiregistration.k8s.io", "v1", "apiservices", "APIService", namespaced=False
)
_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
_NAME = "external-metrics"


@dataclass
class Figure:
    """The figure that every metric has."""

    value: int


@asynccontextmanager
async def external_metrics(
    client: HttpClient, cluster: Cluster, namespace: str, value: int
) -> AsyncIterator[Figure]:
    """Serve a figure to the autoscaler of a cluster, until the block ends."""
    figure = Figure(value)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving = Pki(cluster.directory / "pki").pair("serving")
    context.load_cert_chain(serving.certificate, serving.key)
    served = listening(_application(figure), context, address=cluster.address, shutdown_timeout=1)
    async with served as port:
        await client.create(SERVICES, _service(namespace, port))
        await client.create(_SLICES, _endpoints(namespace, cluster.address, port))
        await client.create(_API_SERVICES, _api_service(namespace, port))
        try:
            yield figure
        finally:
            await client.delete(_API_SERVICES, f"{_VERSION}.{_GROUP}")


def _application(figure: Figure) -> web.Application:
    async def discovery(_: web.Request) -> web.Response:
        kind = {"name": "load", "namespaced": True, "kind": "ExternalMetricValueList"}
        resources = [{**kind, "singularName": "", "verbs": ["get"]}]
        answer = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": _API}
        return web.json_response(answer | {"resources": resources})

    async def metric(request: web.Request) -> web.Response:
        item = {
            "metricName": request.match_info["metric"],
            "metricLabels": {},
            "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "value": str(figure.value),
        }
        answer = {"kind": "ExternalMetricValueList", "apiVersion": _API, "metadata": {}}
        return web.json_response(answer | {"items": [item]})

    application = web.Application()
    application.router.add_get(f"/apis/{_API}", discovery)
    application.router.add_get(f"/apis/{_API}/namespaces/{{namespace}}/{{metric}}", metric)
    return application


def _service(namespace: str, port: int) -> Manifest:
    return {
        "metadata": {"name": _NAME, "namespace": namespace},
        "spec": {"ports": [{"name": "https", "port": port}]},
    }


def _endpoints(namespace: str, address: str, port: int) -> Manifest:
    labels = {"kubernetes.io/service-name": _NAME}
    return {
        "metadata": {"name": _NAME, "namespace": namespace, "labels": labels},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }


def _api_service(namespace: str, port: int) -> Manifest:
    return {
        "metadata": {"name": f"{_VERSION}.{_GROUP}"},
        "spec": {
            "group": _GROUP,
            "version": _VERSION,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": True,
            "service": {"name": _NAME, "namespace": namespace, "port": port},
        },
    }
