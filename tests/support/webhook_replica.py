"""A replica of the webhook in this process, and the objects that make an API server use it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from mpi_operator.api.crd import custom_resource_definition
from mpi_operator.kube import config, errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Key, Manifest, Resource
from mpi_operator.webhook.admission_response import Admission
from mpi_operator.webhook.loop_thread import LoopThread
from mpi_operator.webhook.metrics import WebhookMetrics
from mpi_operator.webhook.rotation import Times
from mpi_operator.webhook.server import Decisions
from mpi_operator.webhook.webhook import Settings, webhook

CRD = "mpijobs.kubeflow.org"
CONFIGURATION = "mpi-operator"
VALIDATING = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
MUTATING = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
V1 = Resource("kubeflow.org", "v1", "mpijobs", "MPIJob")


def renamed(manifest: Manifest, version: str) -> Manifest:
    """A conversion that changes the name of the version only."""
    return {**manifest, "apiVersion": f"kubeflow.org/{version}"}


def accept(_: Manifest) -> Admission:
    return Admission(allowed=True)


@dataclass
class Replica:
    """A webhook on a port of this machine."""

    kubeconfig: Path
    namespace: str
    port: int
    times: Times = field(default_factory=Times)
    decisions: Decisions = field(default_factory=lambda: Decisions(renamed, accept, accept))

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Replica"]:
        """Serve as the operator does: in a thread of its own."""
        settings = Settings(
            port=self.port,
            host="127.0.0.1",
            secret=Key(self.namespace, "mpi-operator-webhook"),
            service=Key(self.namespace, "mpi-operator-webhook"),
            names=("localhost",),
            times=self.times,
        )
        loaded = config.load(kubeconfig=self.kubeconfig)
        serve = partial(
            webhook, settings, partial(HttpClient, loaded), self.decisions, WebhookMetrics()
        )
        thread = LoopThread(serve, "webhook")
        await thread.start()
        async with thread:
            yield self


def crd(url: str) -> Manifest:
    """Our CRD with the webhook at an address instead of behind a Service."""
    manifest = custom_resource_definition()
    manifest["spec"]["conversion"]["webhook"]["clientConfig"] = {"url": f"{url}/convert"}
    return manifest


def configuration(resource: Resource, url: str) -> Manifest:
    """Two webhooks about MPIJobs in one configuration."""
    path = "/validate" if resource is VALIDATING else "/mutate"
    webhooks = [
        {
            "name": f"{name}.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "timeoutSeconds": 10,
            "rules": [
                {
                    "operations": ["CREATE", "UPDATE"],
                    "apiGroups": ["kubeflow.org"],
                    "apiVersions": ["*"],
                    "resources": ["mpijobs"],
                }
            ],
            "clientConfig": {"url": url + path},
        }
        for name in ("first", "second")
    ]
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": CONFIGURATION},
        "webhooks": webhooks,
    }


async def edit(
    client: HttpClient, resource: Resource, name: str, change: Callable[[Manifest], None]
) -> None:
    """Replace an object by a changed one, as `kubectl edit` does, but again after a conflict."""
    while True:
        found = await client.get(resource, name)
        change(found)
        try:
            await client.replace(resource, found)
            return
        except errors.Conflict:
            continue


async def bundles(client: HttpClient) -> list[str]:
    """The `caBundle` of the CRD and of each webhook."""
    found = await client.get(CUSTOM_RESOURCE_DEFINITIONS, CRD)
    clients = [found["spec"]["conversion"]["webhook"]["clientConfig"]]
    for resource in (VALIDATING, MUTATING):
        configured = await client.get(resource, CONFIGURATION)
        clients += [each["clientConfig"] for each in configured["webhooks"]]
    return [each.get("caBundle", "") for each in clients]
