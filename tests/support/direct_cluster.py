"""The local cluster without `await`, for tests that change it by hand.

Its verbs wait for nothing but their turn in the event loop, so each can be run to its end at once,
with or without a loop.
"""

from collections.abc import AsyncGenerator, Coroutine, Iterable
from contextlib import suppress
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from mpi_operator.kube import errors
from mpi_operator.kube.client import Client, DeleteOptions, WatchEvent, WatchOptions
from mpi_operator.kube.informer import Informer
from mpi_operator.kube.resources import Key, Manifest, Resource
from mpi_operator.local.apiserver.cluster import LocalCluster

T = TypeVar("T")


def result(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a verb of the local cluster."""
    try:
        while True:
            coroutine.send(None)
    except StopIteration as stop:
        value: T = stop.value
        return value


class DirectCluster:
    """The local cluster as Kubernetes' other controllers, its nodes and its users write to it."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster

    def get(self, resource: Resource, key: Key) -> Manifest:
        return result(self._cluster.get(resource, key.name, key.namespace))

    def find(self, resource: Resource, key: Key) -> Manifest | None:
        try:
            return self.get(resource, key)
        except errors.NotFound:
            return None

    def all(self, resource: Resource) -> list[Manifest]:
        return result(self._cluster.list(resource)).items

    def create(self, resource: Resource, manifest: Manifest) -> Manifest:
        """Create an object. Its status, if it has one, is stored as its controller would do it."""
        stored = result(self._cluster.create(resource, manifest))
        status = manifest.get("status")
        key = Key(stored["metadata"].get("namespace", ""), stored["metadata"]["name"])
        return self.set_status(resource, key, status) if status else stored

    def patch(self, resource: Resource, key: Key, patch: Manifest) -> Manifest:
        return result(self._cluster.patch(resource, key.name, patch, key.namespace))

    def patch_status(self, resource: Resource, key: Key, status: Manifest) -> Manifest:
        patch = {"status": status}
        return result(
            self._cluster.patch(resource, key.name, patch, key.namespace, subresource="status")
        )

    def replace(self, resource: Resource, manifest: Manifest) -> Manifest:
        return result(self._cluster.replace(resource, manifest))

    def set_status(self, resource: Resource, key: Key, status: Any) -> Manifest:
        new = self.get(resource, key) | {"status": status}
        return result(self._cluster.replace(resource, new, subresource="status"))

    def delete(
        self, resource: Resource, key: Key, options: DeleteOptions = DeleteOptions()
    ) -> None:
        result(self._cluster.delete(resource, key.name, key.namespace, options))

    def delete_at_once(self, resource: Resource, key: Key) -> None:
        """Delete without a grace period, as a node does once a pod has ended."""
        self.delete(resource, key, DeleteOptions(grace_period_seconds=0))

    def remove(self, resource: Resource, key: Key) -> None:
        """Delete an object by force: no grace period and no finalizer holds it."""
        with suppress(errors.NotFound):
            self.patch(resource, key, {"metadata": {"finalizers": None}})
            self.delete_at_once(resource, key)


class WatchesUntilNow:
    """A reading client whose watches end when there are no more events."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._cluster, verb)

    def watch(
        self, resource: Resource, namespace: str, options: WatchOptions
    ) -> AsyncGenerator[WatchEvent, None]:
        return self._cluster.watch(resource, namespace, replace(options, timeout=0))


def reader(cluster: LocalCluster) -> Client:
    return cast("Client", WatchesUntilNow(cluster))


def catch_up(informers: Iterable[Informer[Any]]) -> None:
    """Deliver all events to informers with such a client. Needs a running loop."""
    for informer in informers:
        try:
            result(informer._follow())
        except errors.Gone:  # more happened than a watch cache holds: list again, as `run` does
            result(informer._follow())
