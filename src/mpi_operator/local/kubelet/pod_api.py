"""The pods of the cluster, as the node reads and writes them."""

from contextlib import suppress
from typing import Any

import msgspec

from mpi_operator.kube import errors
from mpi_operator.kube.client import Client, DeleteOptions
from mpi_operator.kube.objects import Metadata, Object
from mpi_operator.kube.resources import PODS, Key, Manifest, Resource

_decode = msgspec.json.Decoder(dict[str, Any] | None).decode
_EMPTY = msgspec.Raw(b"{}")


class PodMetadata(Metadata, frozen=True):
    """Metadata with the fields of the downward API and of deletion."""

    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    deletion_grace_period_seconds: int | None = None


class CachedPod(Object, frozen=True):
    """A pod in the node's cache. Most changes are of its status, so the rest stays encoded."""

    metadata: PodMetadata = PodMetadata()
    spec: msgspec.Raw = _EMPTY
    status: msgspec.Raw = _EMPTY

    @property
    def manifest(self) -> Manifest:
        return {
            "metadata": msgspec.to_builtins(self.metadata),
            "spec": _decode(self.spec) or {},
            "status": _decode(self.status) or {},
        }


class PodApi:
    """What the node asks of the cluster. Writes to a pod that is gone or replaced do nothing."""

    def __init__(self, client: Client, node_name: str) -> None:
        self._client = client
        self._node_name = node_name

    async def get(self, namespace: str, resource: Resource, name: str) -> Manifest | None:
        """An object that a pod refers to; None if it does not exist."""
        try:
            return await self._client.get(resource, name, namespace)
        except errors.NotFound:
            return None

    async def bind(self, pod: Manifest) -> None:
        """Assign a pod to this node."""
        if not pod["spec"].get("nodeName"):
            await self._patch(pod, {"spec": {"nodeName": self._node_name}})

    async def write_status(self, pod: Manifest, status: Manifest) -> None:
        await self._patch(pod, {"status": status}, "status")

    async def delete(self, pod: Manifest) -> None:
        """Remove a pod whose processes have ended."""
        key = key_of(pod)
        options = DeleteOptions(uid=pod["metadata"]["uid"], grace_period_seconds=0)
        with suppress(errors.NotFound, errors.Conflict):
            await self._client.delete(PODS, key.name, key.namespace, options)

    async def _patch(self, pod: Manifest, change: Manifest, subresource: str = "") -> None:
        # With the uid, so that another pod of the same name is never changed.
        patch = {"metadata": {"uid": pod["metadata"]["uid"]}, **change}
        key = key_of(pod)
        with suppress(errors.NotFound, errors.Conflict):
            await self._client.patch(PODS, key.name, patch, key.namespace, subresource=subresource)


def key_of(pod: Manifest) -> Key:
    return Key(pod["metadata"]["namespace"], pod["metadata"]["name"])
