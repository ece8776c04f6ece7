"""Stores the status, and only then records events and metrics about it."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from mpi_operator.api import types
from mpi_operator.api.types import ConditionType, MPIJob, MPIJobStatus
from mpi_operator.kube import errors
from mpi_operator.kube.client import Client
from mpi_operator.kube.events import EventRecorder, ObjectReference

from .cached_types import MPI_JOBS
from .caches import Caches
from .events import JobEvent, became_true, can_wait, status_events, warning
from .problems import Problem
from .replacement import REPLACED

if TYPE_CHECKING:
    from .metrics import JobMetrics

# The counts change with every pod; what they amount to is in the conditions, which do not wait.
_COUNTS_MAY_WAIT = timedelta(seconds=5)
_TRY_REFUSED_AGAIN = timedelta(minutes=5)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Published:
    """What came of publishing a status."""

    version: str = ""  # the resourceVersion of the job, where it was written
    requeue_after: timedelta | None = None  # when to try again, where it was put off or refused
    counts_changed: datetime | None = None  # since when counts wait to be written

    @property
    def is_stored(self) -> bool:
        return self.requeue_after is None


class Publisher:
    """Writes statuses and reports them."""

    def __init__(
        self, client: Client, caches: Caches, events: EventRecorder, metrics: "JobMetrics"
    ) -> None:
        self._client = client
        self._caches = caches
        self._events = events
        self._metrics = metrics

    async def publish(
        self,
        job: MPIJob,
        status: MPIJobStatus,
        problems: Sequence[Problem],
        counts_changed: datetime | None,
        now: datetime,
    ) -> Published:
        """Store the status if it differs. Counts alone may wait since `counts_changed`."""
        if status == job.status:
            return Published()
        if can_wait(job.status, status):
            counts_changed = counts_changed or now
            wait = counts_changed + _COUNTS_MAY_WAIT - now
            if wait > timedelta(0):
                return Published(requeue_after=wait, counts_changed=counts_changed)
        try:
            version = await self._store(job, status)
        except errors.Invalid as error:
            # The job was stored under other rules, or a policy forbids it. Its status cannot be
            # written, so an event has to report that.
            log.warning(
                "The API server rejected the status of a job",
                extra={"job": f"{job.metadata.namespace}/{job.metadata.name}", "error": str(error)},
            )
            self.record(job, [warning("StatusRefused", str(error))])
            return Published(requeue_after=_TRY_REFUSED_AGAIN, counts_changed=counts_changed)
        self.record(job, status_events(job.status, status, problems))
        self._count(job.status, status)
        return Published(version)

    def record(self, job: MPIJob, events: Iterable[JobEvent]) -> None:
        """Record events about a job."""
        regarding = ObjectReference(
            types.API_VERSION,
            types.KIND,
            job.metadata.name,
            job.metadata.namespace,
            job.metadata.uid,
            job.metadata.resource_version,
        )
        for event in events:
            self._events.record(regarding, event.severity, event.reason, event.message)
            if event.reason == REPLACED:
                self._metrics.job_restarted_worker()

    async def _store(self, job: MPIJob, status: MPIJobStatus) -> str:
        metadata = job.metadata
        manifest = {
            "apiVersion": types.API_VERSION,
            "kind": types.KIND,
            "metadata": {
                "name": metadata.name,
                "namespace": metadata.namespace,
                "uid": metadata.uid,
                "resourceVersion": metadata.resource_version,
            },
            "status": types.status_manifest(status),
        }
        stored = await self._client.replace(MPI_JOBS, manifest, subresource="status")
        self._caches.wrote(MPI_JOBS, stored)
        version: str = stored["metadata"]["resourceVersion"]
        return version

    def _count(self, old: MPIJobStatus, new: MPIJobStatus) -> None:
        if became_true(old, new, ConditionType.CREATED):
            self._metrics.job_created()
        if became_true(old, new, ConditionType.SUCCEEDED):
            self._metrics.job_succeeded()
        if became_true(old, new, ConditionType.FAILED):
            self._metrics.job_failed()
