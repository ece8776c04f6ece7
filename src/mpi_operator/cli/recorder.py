"""Notes what is known of a job while it runs, so that it can be asked about when it has ended."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from mpi_operator.kube.client import Client
from mpi_operator.kube.resources import EVENTS
from mpi_operator.local.runs import records

from .job_stream import Story

# Between two notes, for many workers change often. What a killed run did last may be missing.
_PAUSE_SECONDS = 0.25


@asynccontextmanager
async def remembering(
    cluster: Client, namespace: str, told: Story, run: Path
) -> AsyncIterator["Memory"]:
    """Note what changes for as long as the block lasts."""
    memory = Memory(cluster, namespace, told, run)
    noting = asyncio.create_task(memory.keep_up())
    try:
        yield memory
    finally:
        noting.cancel()


class Memory:
    """What is on record of a run."""

    def __init__(self, cluster: Client, namespace: str, told: Story, run: Path) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._told = told
        self._run = run
        self._news = asyncio.Event()

    def hear(self) -> None:
        """Something has changed."""
        self._news.set()

    async def keep_up(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            await self._write(None)
            await asyncio.sleep(_PAUSE_SECONDS)

    async def close(self, end: records.End) -> None:
        """Note how it ended."""
        self._news.clear()
        await self._write(end)

    def erase(self) -> None:
        """Have nothing be remembered."""
        self._news.clear()
        records.discard(self._run)

    async def _write(self, end: records.End | None) -> None:
        events = await self._cluster.list(EVENTS, self._namespace)
        with suppress(OSError):  # a full disk must not end a job
            records.write(self._run, records.Record([*self._told.objects, *events.items], end))
