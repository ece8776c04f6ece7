"""`mpijob run`: a job on this machine, from its file to its exit code."""

import asyncio
import signal
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from mpi_operator.api.decode import decode_job, warnings
from mpi_operator.api.field_errors import InvalidJob
from mpi_operator.api.types import MPIJob
from mpi_operator.embedded import MPI_JOBS, machine
from mpi_operator.kube.resources import Manifest
from mpi_operator.local import mpi_installation
from mpi_operator.local.runs import records, run_directories
from mpi_operator.local.sandbox.protocol import Kind, SandboxError

from . import ending
from .job_file import UnusableFile
from .job_stream import JobChanged, JobDeleted, Line, Story, has_ended, story
from .output import Verdict, Voice
from .recorder import Memory, remembering

_LAST_LINES_SECONDS = 2.0
_NAMESPACE = "default"
_PLAIN = (
    "pods are plain processes here, for namespaces cannot be used: {why}; paths of volumes are "
    "translated, and all pods have this machine's host name"
)


class Wishes(NamedTuple):
    """What the person wants besides the job itself."""

    timeout: float | None = None
    oversubscribe: bool = False
    keep: bool = False
    sandbox: Kind | None = None  # None: the best that this machine can have


class Task(NamedTuple):
    """A job that can run here, and all that it needs."""

    manifest: Manifest
    job: MPIJob
    directory: Path
    installation: mpi_installation.Installation
    wishes: Wishes


def run(manifest: Manifest, directory: Path, wishes: Wishes, voice: Voice) -> int:
    """Run a job to its end; the exit code."""
    started = time.monotonic()
    placed = {**manifest, "metadata": {**manifest.get("metadata", {}), "namespace": _NAMESPACE}}
    job = _checked(placed, voice)
    task = Task(placed, job, directory, _mpi(job), wishes)
    owned = run_directories.create()
    try:
        end = _ended(task, owned.directory, voice)
        owned.end(is_clear=True)  # the node has ended all that ran
    finally:
        owned.end()
    kept = (
        records.finished_directory(run_directories.root()) / owned.directory.name
        if wishes.keep
        else None
    )
    seconds = time.monotonic() - started
    voice.close(Verdict(job.metadata.name, end, seconds, kept))
    return end.exit_code


def _checked(manifest: Manifest, voice: Voice) -> MPIJob:
    try:
        job = decode_job(manifest)
    except InvalidJob as invalid:
        lines = "\n".join(f"  {error}" for error in invalid.errors)
        raise UnusableFile(f"this job cannot run:\n{lines}") from invalid
    for warning in warnings(manifest):
        voice.say(f"warning: {warning}")
    return job


def _mpi(job: MPIJob) -> mpi_installation.Installation:
    try:
        return mpi_installation.find(job.spec.mpi_implementation.value)
    except mpi_installation.NotInstalled as missing:
        raise UnusableFile(str(missing)) from missing


def _ended(task: Task, run: Path, voice: Voice) -> records.End:
    if task.wishes.keep:
        records.mark_kept(run)
    try:
        return asyncio.run(_run(task, run, voice))
    except BaseExceptionGroup as group:
        # Whoever asks for a kind of sandbox may ask for one that this machine cannot have.
        if refused := group.subgroup(SandboxError):
            why = f"{_first(refused)}; `--sandbox plain` does without them"
            raise UnusableFile(why) from group
        raise


def _first(group: BaseExceptionGroup[BaseException]) -> str:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else str(first)


async def _run(task: Task, run: Path, voice: Voice) -> records.End:
    name = task.job.metadata.name
    with _interrupts() as interrupted:
        async with machine(
            run,
            working_directory=task.directory,
            implementation=task.installation,
            oversubscribe=task.wishes.oversubscribe,
            kind=task.wishes.sandbox,
            on_plain=lambda why: voice.say(_PLAIN.format(why=why)),
        ) as cluster:
            voice.say(
                f"{name}: {task.job.spec.worker_count} workers with {task.installation.mpirun} "
                "on this machine; images are not used"
            )
            async with (
                story(cluster, name, _NAMESPACE) as told,
                remembering(cluster, _NAMESPACE, told, run) as memory,
            ):
                await cluster.create(MPI_JOBS, task.manifest)
                following = _followed(told, voice, memory)
                end = await _unless(following, interrupted, task.wishes.timeout)
                if end is ending.DELETED:
                    memory.erase()  # as somebody wanted
                else:
                    await memory.close(end)
    return end


async def _unless(
    following: Coroutine[Any, Any, records.End],
    interrupted: asyncio.Event,
    timeout: float | None,
) -> records.End:
    """The end of the job, unless the person does not want to wait for it."""
    end = asyncio.create_task(following)
    interruption = asyncio.create_task(interrupted.wait())
    try:
        await asyncio.wait(
            {end, interruption}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED
        )
        if end.done():
            return end.result()
        return ending.INTERRUPTION if interrupted.is_set() else ending.timed_out(timeout)
    finally:
        end.cancel()
        interruption.cancel()


async def _followed(told: Story, voice: Voice, memory: Memory) -> records.End:
    """Tell the story to its end."""
    ended = await _until_ended(told, voice, memory)
    async for happening in told.rest(_LAST_LINES_SECONDS):
        voice.tell(happening)
    return ending.end_of(ended, told.objects) if ended else ending.DELETED


async def _until_ended(told: Story, voice: Voice, memory: Memory) -> MPIJob | None:
    """Tell what happens; the job when it has ended, None if it was deleted."""
    while True:
        happening = await told.next()
        voice.tell(happening)
        if isinstance(happening, JobDeleted):
            return None
        if isinstance(happening, JobChanged) and has_ended(happening.job):
            return happening.job
        if not isinstance(happening, Line):
            memory.hear()
        if not told.has_more:
            voice.idle()


@contextmanager
def _interrupts() -> Iterator[asyncio.Event]:
    """Set when the person, or the system, wants it to end."""
    loop, asked = asyncio.get_running_loop(), asyncio.Event()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, asked.set)
    try:
        yield asked
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
