"""The progress that the program of a job reports in the launcher's log."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, suppress
from datetime import datetime

from mpi_operator.api import labels
from mpi_operator.cli.job_output.job_stream import role_of
from mpi_operator.cli.job_output.program_progress import ProgramProgress
from mpi_operator.kube import errors
from mpi_operator.kube.client import LogOptions
from mpi_operator.kube.resources import Manifest

from .local_jobs import LocalJob

# Enough for the pace, with hundreds of ranks or a library that logs a lot. A log may have millions.
_LAST_LINES = 10_000
_HEADER_BYTES = 1 << 20


async def read(found: LocalJob, pods: Sequence[Manifest]) -> str:
    """The line of the launcher that was started last; "" if its program reports nothing."""
    launchers = [pod for pod in pods if role_of(pod) == labels.Role.LAUNCHER]
    if not launchers:
        return ""
    newest = max(launchers, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
    progress = ProgramProgress()
    with suppress(errors.KubeError):  # it has not started, or its log is gone
        async for line in _log(found, newest, LogOptions(limit_bytes=_HEADER_BYTES)):
            progress.note_header(line)
        options = LogOptions(timestamps=True, tail_lines=_LAST_LINES)
        async for line in _log(found, newest, options):
            timestamp, _, printed = line.partition(b" ")
            progress.note(printed, _seconds(timestamp))
    return progress.line


async def _log(found: LocalJob, pod: Manifest, options: LogOptions) -> AsyncIterator[bytes]:
    log = found.cluster.log(pod["metadata"]["name"], found.namespace, options)
    async with aclosing(log) as lines:
        async for line in lines:
            yield line


def _seconds(timestamp: bytes) -> float:
    return datetime.fromisoformat(timestamp.decode()).timestamp()
