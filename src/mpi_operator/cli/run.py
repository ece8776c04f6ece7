"""`mpijob run`: a job on this machine, from its file to its exit code."""

import asyncio
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mpi_operator.api import conditions, labels
from mpi_operator.api.complaints import InvalidJob
from mpi_operator.api.reading import read_job, warnings
from mpi_operator.api.types import ConditionType, MPIJob
from mpi_operator.embedded import MPI_JOBS, machine
from mpi_operator.kube.client import Client
from mpi_operator.kube.resources import PODS, Manifest
from mpi_operator.local import mpi, runs

from .job_file import UnusableFile
from .story import JobChanged, JobDeleted, Story, has_ended, story
from .voice import Verdict, Voice

SUCCESS = 0
FAILED = 1
UNUSABLE = 2
TIMED_OUT = 124
INTERRUPTED = 130

_LAST_LINES_SECONDS = 2.0
_NAMESPACE = "default"


@dataclass(frozen=True)
class Wishes:
    """What the person wants besides the job itself."""

    timeout: float | None = None
    oversubscribe: bool = False


def run(manifest: Manifest, directory: Path, wishes: Wishes, voice: Voice) -> int:
    """Run a job to its end; the exit code."""
    job = _checked(manifest, voice)
    installation = _mpi(job)
    owned = runs.create()
    try:
        return asyncio.run(_run(manifest, job, directory, installation, owned, wishes, voice))
    finally:
        owned.end()


def _checked(manifest: Manifest, voice: Voice) -> MPIJob:
    placed = {**manifest, "metadata": {**manifest.get("metadata", {}), "namespace": _NAMESPACE}}
    try:
        job = read_job(placed)
    except InvalidJob as invalid:
        lines = "\n".join(f"  {complaint}" for complaint in invalid.complaints)
        raise UnusableFile(f"this job cannot run:\n{lines}") from invalid
    for warning in warnings(placed):
        voice.say(f"warning: {warning}")
    return job


def _mpi(job: MPIJob) -> mpi.Installation:
    try:
        return mpi.find(job.spec.mpi_implementation.value)
    except mpi.NotInstalled as missing:
        raise UnusableFile(str(missing)) from missing


async def _run(
    manifest: Manifest,
    job: MPIJob,
    directory: Path,
    installation: mpi.Installation,
    owned: runs.Run,
    wishes: Wishes,
    voice: Voice,
) -> int:
    started = time.monotonic()
    name = job.metadata.name
    with _interrupts() as interrupted:
        async with machine(
            owned.directory,
            working_directory=directory,
            implementation=installation,
            oversubscribe=wishes.oversubscribe,
        ) as cluster:
            voice.say(
                f"{name}: {job.spec.worker_count} workers with {installation.mpirun} on this "
                "machine; images are not used"
            )
            async with story(cluster, name, _NAMESPACE) as told:
                metadata = {**manifest["metadata"], "namespace": _NAMESPACE}
                await cluster.create(MPI_JOBS, {**manifest, "metadata": metadata})
                ended = await _followed(told, voice, interrupted, wishes.timeout)
                code, sentence = await _verdict(cluster, ended, interrupted, wishes.timeout)
    voice.close(Verdict(name, code, sentence, time.monotonic() - started))
    return code


async def _followed(
    told: Story, voice: Voice, interrupted: asyncio.Event, timeout: float | None
) -> MPIJob | JobDeleted | None:
    """Tell the story to its end; None where the person did not want to hear the end."""
    following = asyncio.create_task(_until_ended(told, voice))
    interruption = asyncio.create_task(interrupted.wait())
    try:
        await asyncio.wait(
            {following, interruption}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED
        )
        if not following.done():
            return None
        async for happening in told.rest(_LAST_LINES_SECONDS):
            voice.tell(happening)
        return following.result()
    finally:
        following.cancel()
        interruption.cancel()


async def _until_ended(told: Story, voice: Voice) -> MPIJob | JobDeleted:
    while True:
        happening = await told.next()
        voice.tell(happening)
        if isinstance(happening, JobChanged) and has_ended(happening.job):
            return happening.job
        if isinstance(happening, JobDeleted):
            return happening


async def _verdict(
    cluster: Client,
    ended: MPIJob | JobDeleted | None,
    interrupted: asyncio.Event,
    timeout: float | None,
) -> tuple[int, str]:
    if ended is None:
        if interrupted.is_set():
            return INTERRUPTED, "was interrupted"
        return TIMED_OUT, f"did not end within {timeout:g} s"
    if isinstance(ended, JobDeleted):
        return FAILED, "was deleted"
    if conditions.is_true(ended.status.conditions, ConditionType.SUCCEEDED):
        return SUCCESS, "succeeded"
    last = conditions.describing(ended.status.conditions)
    return await _exit_code(
        cluster, ended
    ), f"failed: {last.message if last else 'nobody knows why'}"


async def _exit_code(cluster: Client, job: MPIJob) -> int:
    """That of the launcher's container, as far as it is known."""
    selector = labels.as_selector(labels.role_selector(job, labels.Role.LAUNCHER))
    listing = await cluster.list(PODS, _NAMESPACE, label_selector=selector)
    codes = [code for pod in listing.items if (code := _pod_exit_code(pod))]
    return codes[-1] if codes else FAILED


def _pod_exit_code(pod: Manifest) -> int:
    for container in pod.get("status", {}).get("containerStatuses") or ():
        for state in (container.get("state") or {}, container.get("lastState") or {}):
            if code := (state.get("terminated") or {}).get("exitCode"):
                return int(code)
    return 0


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
