"""Reads what launchers have printed lately. It is a help, and nothing depends on it."""

from contextlib import aclosing, suppress

from mpi_operator.api.types import MPIJob
from mpi_operator.build.scripts import WAITING
from mpi_operator.kube import errors
from mpi_operator.kube.client import Client

from .clock import Clock, utc_now
from .launcher_waits import FRESH
from .memory import Memories
from .news import shortened
from .observed import Heard, Speaker

_MOST_LINES, _MOST_BYTES = 20, 64 * 1024  # people print what they like
_WAITING = WAITING.encode()


class Listener:
    """Remembers for which workers a launcher waits."""

    def __init__(self, client: Client, memories: Memories, clock: Clock = utc_now) -> None:
        self._client = client
        self._memories = memories
        self._clock = clock

    async def listen(self, job: MPIJob, speaker: Speaker) -> None:
        """Read the log. What cannot be read, or is not there, is nothing."""
        words: list[str] = []
        with suppress(errors.KubeError):
            log = self._client.log(
                speaker.pod,
                job.metadata.namespace,
                container=speaker.container,
                tail_lines=_MOST_LINES,
                since_seconds=int(FRESH.total_seconds()),
                limit_bytes=_MOST_BYTES,
            )
            async with aclosing(log):
                words += [_words(line) async for line in log if _WAITING in line]
        self._memories.of(job).heard = Heard(speaker.uid, self._clock(), "\n".join(words))


def _words(line: bytes) -> str:
    return shortened(line.decode(errors="replace"))
