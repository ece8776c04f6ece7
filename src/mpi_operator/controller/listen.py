"""Reads what launchers have printed lately. It is a help, and nothing depends on it."""

import asyncio
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime

from mpi_operator.api.types import MPIJob
from mpi_operator.kube import errors
from mpi_operator.kube.client import Client

from .clock import Clock, utc_now
from .job_state import Memories
from .launcher_waits import FRESH, Hearing, waits_in
from .observed import Heard

_MOST_LINES, _MOST_BYTES = 2000, 256 * 1024  # people print what they like
_LONGEST = 3.0  # seconds: of a node that does not answer nothing is heard


class Listener:
    """Remembers for which workers a launcher waits."""

    def __init__(self, client: Client, memories: Memories, clock: Clock = utc_now) -> None:
        self._client = client
        self._memories = memories
        self._clock = clock

    async def listen(self, job: MPIJob, hearing: Hearing) -> None:
        """Read the log. If that cannot be, what was heard before counts for a while."""
        memory, now = self._memories.of(job), self._clock()
        try:
            async with asyncio.timeout(_LONGEST):
                waits = waits_in(job, await self._words(job, hearing))
        except (errors.KubeError, TimeoutError):
            memory.heard = _remembered(memory.heard, hearing, now)
        else:
            memory.heard = Heard(hearing.uid, now, waits, read_at=now)

    async def _words(self, job: MPIJob, hearing: Hearing) -> list[bytes]:
        log = self._client.log(
            hearing.pod,
            job.metadata.namespace,
            container=hearing.container,
            tail_lines=_MOST_LINES,
            since_seconds=int(FRESH.total_seconds()),
            limit_bytes=_MOST_BYTES,
        )
        async with aclosing(log):
            return [line async for line in log]


def _remembered(heard: Heard | None, hearing: Hearing, now: datetime) -> Heard:
    if heard is None or heard.uid != hearing.uid or heard.read_at is None:
        return Heard(hearing.uid, now)
    is_fresh = now - heard.read_at < FRESH
    return replace(heard, at=now, waits=heard.waits if is_fresh else {})
