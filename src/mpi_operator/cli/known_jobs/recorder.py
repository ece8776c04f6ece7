"""Records running jobs on disk, so that other verbs can show them after their end."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from mpi_operator.cli.job_output.job_stream import JobStream
from mpi_operator.kube.client import Client
from mpi_operator.kube.resources import EVENTS
from mpi_operator.local.kubelet import pod_logs
from mpi_operator.local.runs import records

from . import job_records

# Between two writes, because many workers change often. A killed run may lack its last changes.
_PAUSE_SECONDS = 0.25


@asynccontextmanager
async def recording(
    cluster: Client, namespace: str, streams: Sequence[JobStream], run: Path
) -> AsyncIterator["Recorder"]:
    """Record changes until the block ends."""
    recorder = Recorder(cluster, namespace, streams, run)
    writing = asyncio.create_task(recorder.write_changes())
    try:
        yield recorder
    finally:
        writing.cancel()


class Recorder:
    """Writes the record of a run."""

    def __init__(
        self, cluster: Client, namespace: str, streams: Sequence[JobStream], run: Path
    ) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._streams = streams
        self._run = run
        self._changed = asyncio.Event()
        self._ends: dict[str, records.End] = {}
        self._deleted: set[str] = set()
        self._deleted_pods: set[str] = set()

    def mark_changed(self) -> None:
        """Have the record written soon."""
        self._changed.set()

    async def write_changes(self) -> None:
        while True:
            await self._changed.wait()
            await self._write()
            await asyncio.sleep(_PAUSE_SECONDS)

    async def note_end(self, job: str, end: records.End) -> None:
        """Write how a job ended."""
        self._ends[job] = end
        await self._write()

    async def forget(self, job: str) -> None:
        """Remove a job that was deleted."""
        self._deleted.add(job)
        await self._write()

    def delete_logs(self) -> None:
        """Remove the files of deleted jobs, when their pods have ended."""
        pod_logs.delete(self._run, self._deleted_pods)

    async def _write(self) -> None:
        self._changed.clear()
        events = await self._cluster.list(EVENTS, self._namespace)
        objects = [each for stream in self._streams for each in stream.objects]
        record = records.Record([*objects, *events.items], self._ends)
        for job in self._deleted:
            self._deleted_pods |= job_records.pods(record, job)
            record = job_records.without(record, job)
        with suppress(OSError):  # a full disk must not end a job
            if job_records.names(record):
                records.write(self._run, record)
            else:
                records.discard(self._run)
