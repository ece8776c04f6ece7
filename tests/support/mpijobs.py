"""MPIJobs for tests: manifests with the one thing that matters changed, and the kind itself."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from mpi_operator.api.crd import v2beta1_only
from mpi_operator.kube import config, errors
from mpi_operator.kube.http import HttpClient
from mpi_operator.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Manifest, Resource
from tests.support.waiting import until

MPIJOBS = Resource("kubeflow.org", "v2beta1", "mpijobs", "MPIJob")


def template(**spec: Any) -> Manifest:
    """A pod template with one container."""
    return {"spec": {"containers": [{"name": "mpi", "image": "example.com/mpi:1"}], **spec}}


def mpijob(
    name: str = "pi",
    namespace: str = "default",
    *,
    launcher: Manifest | None = None,
    worker: Manifest | None = None,
    **spec: Any,
) -> Manifest:
    """A job with a launcher and two workers; what is given is laid over that."""
    roles = {
        "Launcher": {"template": template(), **(launcher or {})},
        "Worker": {"replicas": 2, "template": template(), **(worker or {})},
    }
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"mpiReplicaSpecs": roles, **spec},
    }


def changed(manifest: Manifest, path: str, value: Any) -> Manifest:
    """A copy with one field set, such as `spec.mpiReplicaSpecs.Worker.replicas`."""
    copy: Manifest = json.loads(json.dumps(manifest))
    *parents, last = path.split(".")
    inner: Any = copy
    for name in parents:
        inner = inner[int(name) if name.isdecimal() else name]
    inner[int(last) if last.isdecimal() else last] = value
    return copy


def without(manifest: Manifest, path: str) -> Manifest:
    """A copy that lacks one field."""
    marked = changed(manifest, path, "gone")
    *parents, last = path.split(".")
    inner = marked
    for name in parents:
        inner = inner[name]
    del inner[last]
    return marked


async def install(client: HttpClient) -> None:
    """Make sure that the server has our definition and serves it.

    Only v2beta1, because other versions need the operator's webhook.
    """
    definition = v2beta1_only()
    await client.apply(CUSTOM_RESOURCE_DEFINITIONS, definition, manager="tests", force=True)
    await until(lambda: _is_served(client))


def install_on(kubeconfig: Path) -> None:
    """The same for fixtures that are not asynchronous."""

    async def connect_and_install() -> None:
        async with HttpClient(config.load(kubeconfig=kubeconfig)) as client:
            await install(client)

    asyncio.run(connect_and_install())


async def uninstall(client: HttpClient) -> None:
    """Delete the kind from the server, with every job."""
    name = v2beta1_only()["metadata"]["name"]
    with suppress(errors.NotFound):
        await client.delete(CUSTOM_RESOURCE_DEFINITIONS, name)
    await until(lambda: _is_gone(client, name))


async def install_without_rules(client: HttpClient) -> None:
    """Our definition as it might have been before it had rules: types only."""
    definition = without_rules(v2beta1_only())
    await client.apply(CUSTOM_RESOURCE_DEFINITIONS, definition, manager="tests", force=True)
    await until(lambda: _is_served(client))


def without_rules(part: Any) -> Any:
    """A schema, or anything that contains schemas, with types only."""
    if isinstance(part, dict):
        rules = ("x-kubernetes-validations", "minimum", "maximum", "enum")
        return {k: without_rules(v) for k, v in part.items() if k not in rules}
    return [without_rules(each) for each in part] if isinstance(part, list) else part


async def _is_gone(client: HttpClient, name: str) -> bool:
    try:
        await client.get(CUSTOM_RESOURCE_DEFINITIONS, name)
    except errors.NotFound:
        return not await _is_served(client)
    return False


async def _is_served(client: HttpClient) -> bool:
    try:
        await client.list(MPIJOBS)
    except errors.NotFound:
        return False
    return True
