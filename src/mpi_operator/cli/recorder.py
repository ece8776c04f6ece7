"""Records running jobs on disk, so that other verbs can show them after their end."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from mpi_operator.kube.client import Client
from mpi_operator.kube.resources import EVENTS
from mpi_operator.local.runs import records

from .job_stream import JobStream

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

    def mark_changed(self) -> None:
        """Have the record written soon."""
        self._changed.set()

    async def write_changes(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._write(None)
            await asyncio.sleep(_PAUSE_SECONDS)

    async def close(self, end: records.End) -> None:
        """Write how the run ended."""
        self._changed.clear()
        await self._write(end)

    def erase(self) -> None:
        """Remove the record."""
        self._changed.clear()
        records.discard(self._run)

    async def _write(self, end: records.End | None) -> None:
        events = await self._cluster.list(EVENTS, self._namespace)
        with suppress(OSError):  # a full disk must not end a job
            objects = [each for stream in self._streams for each in stream.objects]
            records.write(self._run, records.Record([*objects, *events.items], end))
