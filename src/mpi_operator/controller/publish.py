"""The status on record, and only then events and numbers about it."""

import logging
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from mpi_operator.api import types
from mpi_operator.api.types import ConditionType, MPIJob, MPIJobStatus
from mpi_operator.kube import errors
from mpi_operator.kube.client import Client
from mpi_operator.kube.events import EventRecorder, ObjectReference

from .cached_types import MPI_JOBS
from .caches import Caches
from .clock import Clock, utc_now
from .events import JobEvent, became_true, has_only_counts_changed, status_events, warning
from .job_state import JobStates
from .problems import Problem
from .replacement import REPLACED

if TYPE_CHECKING:
    from .metrics import JobMetrics

# How many pods run changes with every pod; what they make together is told by conditions, at once.
_COUNTS_MAY_WAIT = timedelta(seconds=5)
_TRY_REFUSED_AGAIN = timedelta(minutes=5)

log = logging.getLogger(__name__)


class Publisher:
    """Writes statuses and tells of them."""

    def __init__(
        self,
        client: Client,
        caches: Caches,
        memories: JobStates,
        events: EventRecorder,
        metrics: "JobMetrics",
        clock: Clock = utc_now,
    ) -> None:
        self._client = client
        self._caches = caches
        self._memories = memories
        self._events = events
        self._metrics = metrics
        self._clock = clock

    async def publish(
        self, job: MPIJob, status: MPIJobStatus, problems: Sequence[Problem]
    ) -> timedelta | None:
        """Store the status if it is another one; how long that was put off, if it was."""
        if status == job.status:
            self._memories.of(job).counts_changed = None
            return None
        wait = self._may_wait(job, status)
        if wait is not None:
            return wait
        try:
            await self._store(job, status)
        except errors.Invalid as error:
            # Stored in a time of other rules, or somebody has a policy. Its status cannot be
            # written, so people are told another way.
            log.warning(
                "the status of a job was refused",
                extra={"job": f"{job.metadata.namespace}/{job.metadata.name}", "error": str(error)},
            )
            self.tell(job, [warning("StatusRefused", str(error))])
            return _TRY_REFUSED_AGAIN
        self.tell(job, status_events(job.status, status, problems))
        self._count(job.status, status)
        return None

    def tell(self, job: MPIJob, events: Iterable[JobEvent]) -> None:
        """Send events about a job."""
        regarding = ObjectReference(
            types.API_VERSION,
            types.KIND,
            job.metadata.name,
            job.metadata.namespace,
            job.metadata.uid,
            job.metadata.resource_version,
        )
        for each in events:
            self._events.record(regarding, each.severity, each.reason, each.message)
            if each.reason == REPLACED:
                self._metrics.job_restarted_worker()

    def _may_wait(self, job: MPIJob, status: MPIJobStatus) -> timedelta | None:
        if not has_only_counts_changed(job.status, status):
            return None
        memory, now = self._memories.of(job), self._clock()
        memory.counts_changed = memory.counts_changed or now
        wait = memory.counts_changed + _COUNTS_MAY_WAIT - now
        return wait if wait > timedelta(0) else None

    async def _store(self, job: MPIJob, status: MPIJobStatus) -> None:
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
        memory = self._memories.of(job)
        memory.version, memory.counts_changed = stored["metadata"]["resourceVersion"], None
        self._caches.wrote(MPI_JOBS, stored)

    def _count(self, old: MPIJobStatus, new: MPIJobStatus) -> None:
        if became_true(old, new, ConditionType.CREATED):
            self._metrics.job_created()
        if became_true(old, new, ConditionType.SUCCEEDED):
            self._metrics.job_succeeded()
        if became_true(old, new, ConditionType.FAILED):
            self._metrics.job_failed()
