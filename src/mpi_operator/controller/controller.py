"""Wires caches, queue, reconciler and events together, for any kind of cluster.

caches ──► queue ──► reconciler ──► writer
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from mpi_operator.build.settings import Settings
from mpi_operator.build.ssh_secret import KeyPair
from mpi_operator.kube.cache import Change, Unreadable
from mpi_operator.kube.client import Client
from mpi_operator.kube.events import EventRecorder
from mpi_operator.kube.noop_metrics import NOOP_METRICS
from mpi_operator.kube.objects import Object
from mpi_operator.kube.queue_workers import run_workers
from mpi_operator.kube.resources import Key, Resource
from mpi_operator.kube.workqueue import WorkQueue

from .cached_types import Pod, StoredJob
from .caches import Caches, job_key
from .execute import Executor, new_key_pair
from .launcher_log import LogReader
from .observe import Observer
from .publish import Publisher
from .reconcile_limiter import ReconcileLimiter
from .reconciler import Reconciler
from .write_limiter import WriteLimiter

if TYPE_CHECKING:
    from mpi_operator.kube.metrics import Metrics

    from .metrics import JobMetrics

# A reconcile costs more the more pods a job has, and they all change at the same time: with a
# thousand of them one every half second is enough, with two it comes nearly at once.
_DELAY_PER_POD = 0.0005  # seconds
_SHORTEST_DELAY = 0.02
_LONGEST_DELAY = 0.5
_MOST_SLOW = 100  # slow reconciles, beside those that the limiter counts
_UNCOUNTED = cast("JobMetrics", NOOP_METRICS)


class Controller:
    """Reconciles the jobs of some namespaces, or of all of them."""

    def __init__(
        self,
        reader: Client,
        writer: Client,
        settings: Settings,
        *,
        namespaces: Sequence[str] = ("",),
        concurrency: int = 8,
        write_slots: int = 64,
        metrics: "Metrics | None" = None,
        job_metrics: "JobMetrics | None" = None,
        make_keys: Callable[[], KeyPair] = new_key_pair,
    ) -> None:
        metrics, job_metrics = metrics or NOOP_METRICS, job_metrics or _UNCOUNTED
        self._concurrency = concurrency + _MOST_SLOW
        self._caches = Caches(reader, namespaces, settings, metrics)
        self._queue: WorkQueue[Key] = WorkQueue("mpijobs", metrics=metrics)
        self._events = EventRecorder(writer, "mpi-job-controller", metrics=metrics)
        self._reconciler = Reconciler(
            Observer(self._caches),
            Executor(
                writer, self._caches, settings, WriteLimiter(write_slots), make_keys=make_keys
            ),
            Publisher(writer, self._caches, self._events, job_metrics),
            LogReader(reader),
            settings,
            ReconcileLimiter(concurrency),
            job_metrics,
        )
        self._caches.jobs.on_change(self._job_changed)
        self._caches.pods.on_change(self._pod_changed)
        for cached in self._caches.children:
            cached.on_unreadable(self._child_unreadable)
            if cached is not self._caches.pods:
                cached.on_change(self._child_changed)

    async def follow(self) -> None:
        """Keep the caches up to date until cancelled."""
        await self._caches.follow()

    async def synced(self) -> None:
        """Wait until every cache has been read once."""
        await self._caches.synced()

    async def refresh(self) -> None:
        """Read everything again: another leader may have written until now."""
        await self._caches.refresh()

    async def lead(self) -> None:
        """Reconcile every job, and then those that change, until `stop` is called."""
        async with self._events:
            for job in self._caches.jobs:
                self._queue.add(job.metadata.key)
            await run_workers(self._queue, self._reconciler.reconcile, self._concurrency)

    def stop(self) -> None:
        """Take no more jobs; `lead` ends when the reconciles under way have ended."""
        self._queue.close()

    @property
    def is_synced(self) -> bool:
        return self._caches.is_synced

    @property
    def problems(self) -> list[str]:
        """Why caches are behind, one sentence each."""
        return self._caches.problems

    def resources(self) -> list[tuple[Resource, str]]:
        """What is watched, and where."""
        return [
            (cached.resource, namespace)
            for cached in self._caches
            for namespace in cached.namespaces
        ]

    def _job_changed(self, change: Change[StoredJob]) -> None:
        known = change.new or change.old
        is_known = change.new is not None and self._reconciler.is_own_write(change.new)
        if known is not None and not is_known:
            self._queue.add(known.metadata.key)

    def _pod_changed(self, change: Change[Pod]) -> None:
        if key := _job_of(change):
            delay = _DELAY_PER_POD * self._caches.pods.count_of_job(key)
            self._queue.add_after(key, min(max(delay, _SHORTEST_DELAY), _LONGEST_DELAY))

    def _child_changed(self, change: Change[Object]) -> None:
        if key := _job_of(change):
            self._queue.add(key)

    def _child_unreadable(self, unreadable: Unreadable) -> None:
        if key := job_key(unreadable):
            self._queue.add(key)


def _job_of(change: Change[Any]) -> Key | None:
    known = change.new or change.old
    return job_key(known) if known else None
