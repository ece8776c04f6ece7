"""What is known of the cluster: one cache for each kind of object and watched namespace.

Watches are narrowed on the server to what carries our label. Secrets are not watched at all.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mpi_operator.api import labels
from mpi_operator.build import pod_group
from mpi_operator.build.settings import Settings
from mpi_operator.kube.cache import Change, Unreadable
from mpi_operator.kube.client import Client, Selector
from mpi_operator.kube.informer import Informer
from mpi_operator.kube.objects import Object
from mpi_operator.kube.resources import CONFIG_MAPS, JOBS, PODS, SERVICES, Key, Manifest, Resource

from .cached_types import (
    MPI_JOBS,
    PRIORITY_CLASSES,
    LauncherJob,
    Pod,
    PriorityClass,
    StoredConfigMap,
    StoredJob,
    StoredPodGroup,
    StoredService,
)

if TYPE_CHECKING:
    from mpi_operator.kube.metrics import Metrics

T = TypeVar("T", bound=Object)

_OURS = Selector(labels=labels.as_selector({labels.OPERATOR_NAME: labels.OPERATOR}))
# Those that training-operator created keep its label, so that it finds them if it comes back.
_PODS = Selector(labels=f"{labels.OPERATOR_NAME} in ({labels.OPERATOR},{labels.TRAINING_OPERATOR})")
_BY_JOB = "job"


class Cached(Generic[T]):
    """The objects of one kind, in all namespaces that are watched."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        kind: type[T],
        namespaces: Iterable[str],
        metrics: "Metrics",
        *,
        selector: Selector = Selector(),
    ) -> None:
        self.resource = resource
        self._informers = {
            namespace: Informer(
                client,
                resource,
                kind,
                namespace=namespace,
                selector=selector,
                indexes={_BY_JOB: _job_of},
                metrics=metrics,
            )
            for namespace in namespaces
        }

    def get(self, key: Key) -> T | None:
        informer = self._informer(key.namespace)
        return informer.store.get(key) if informer else None

    def of_job(self, job: Key) -> list[T]:
        """The objects whose labels say that they belong to a job of this name."""
        informer = self._informer(job.namespace)
        return informer.store.where(_BY_JOB, str(job)) if informer else []

    def count_of_job(self, job: Key) -> int:
        """How many of them there are."""
        informer = self._informer(job.namespace)
        return informer.store.count(_BY_JOB, str(job)) if informer else 0

    def wrote(self, manifest: Manifest) -> None:
        """Take in the server's answer to a write of ours before the watch reports it."""
        if informer := self._informer(manifest["metadata"].get("namespace", "")):
            informer.wrote(manifest)

    def on_change(self, handler: Callable[[Change[T]], None]) -> None:
        for informer in self._informers.values():
            informer.on_change(handler)

    def __iter__(self) -> Iterator[T]:
        for informer in self._informers.values():
            yield from informer.store

    def on_unreadable(self, handler: Callable[[Unreadable], None]) -> None:
        for informer in self._informers.values():
            informer.on_unreadable(handler)

    @property
    def unreadable(self) -> Iterator[Unreadable]:
        for informer in self._informers.values():
            yield from informer.unreadable.values()

    @property
    def informers(self) -> Sequence[Informer[T]]:
        return tuple(self._informers.values())

    @property
    def namespaces(self) -> Sequence[str]:
        return tuple(self._informers)

    def _informer(self, namespace: str) -> Informer[T] | None:
        return self._informers.get(namespace) or self._informers.get("")


def _job_of(known: Object) -> list[str]:
    key = job_key(known)
    return [str(key)] if key else []


def job_key(known: Object | Unreadable) -> Key | None:
    """The job that an object belongs to, as its labels say."""
    name = known.metadata.labels.get(labels.JOB_NAME)
    return Key(known.metadata.namespace, name) if name else None


class Caches:
    """All objects that decisions about jobs are based on."""

    def __init__(
        self, client: Client, namespaces: Sequence[str], settings: Settings, metrics: "Metrics"
    ) -> None:
        def ours(resource: Resource, kind: type[T], selector: Selector = _OURS) -> Cached[T]:
            return Cached(client, resource, kind, namespaces, metrics, selector=selector)

        self.jobs = Cached(client, MPI_JOBS, StoredJob, namespaces, metrics)
        self.pods = ours(PODS, Pod, _PODS)
        self.launchers = ours(JOBS, LauncherJob)
        self.services = ours(SERVICES, StoredService)
        self.config_maps = ours(CONFIG_MAPS, StoredConfigMap)
        self.pod_groups: Cached[StoredPodGroup] | None = None
        self.priority_classes: Cached[PriorityClass] | None = None
        if settings.gang_scheduler:
            self.pod_groups = ours(pod_group.resource(settings), StoredPodGroup)
            self.priority_classes = Cached(client, PRIORITY_CLASSES, PriorityClass, ("",), metrics)

    def __iter__(self) -> Iterator[Cached[Any]]:
        yield self.jobs
        yield from self.children
        if self.priority_classes:
            yield self.priority_classes

    @property
    def children(self) -> Iterator[Cached[Any]]:
        """The caches of the objects that jobs own."""
        yield self.pods
        yield self.launchers
        yield self.services
        yield self.config_maps
        if self.pod_groups:
            yield self.pod_groups

    def unreadable(self, job: Key) -> Iterator[str]:
        """The objects of a job that cannot be read, and why."""
        for cached in self.children:
            for each in cached.unreadable:
                if job_key(each) == job:
                    yield f"{cached.resource.kind} {each.metadata.name} is malformed: {each.why}"

    def wrote(self, resource: Resource, manifest: Manifest) -> None:
        """Take in the server's answer to a write of ours before the watch reports it."""
        for cached in self:
            if cached.resource == resource:
                cached.wrote(manifest)

    async def follow(self) -> None:
        """Keep everything up to date until cancelled."""
        async with asyncio.TaskGroup() as group:
            for informer in self._informers():
                group.create_task(informer.run())

    async def synced(self) -> None:
        """Wait until everything has been read once."""
        for informer in self._informers():
            await informer.synced()

    @property
    def is_synced(self) -> bool:
        return all(informer.is_synced for informer in self._informers())

    async def refresh(self) -> None:
        """Read everything again and wait for it."""
        await asyncio.gather(*(informer.refresh() for informer in self._informers()))

    @property
    def problems(self) -> list[str]:
        """Why caches are behind."""
        return [
            f"{informer.resource}: {informer.problem}"
            for informer in self._informers()
            if informer.problem
        ]

    def _informers(self) -> Iterator[Informer[Any]]:
        for cached in self:
            yield from cached.informers
