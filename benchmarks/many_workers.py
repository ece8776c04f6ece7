"""A job with many workers that really run: how long its launcher takes to have a rank in each.

Two cores need minutes to start the pods of so many workers, whatever the transport is. So the
launcher is created when all workers are ready, and then starts a rank in each of them, several
times. Each time is a sample: from `mpirun` until the first rank prints, and until all have printed.
"""

import asyncio
import shlex
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from benchmarks.progress import say
from mpi_operator.kube.client import LogOptions
from mpi_operator.kube.resources import Manifest
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import FLAVOURS, RANK, Overrides, pi

_NAME = "many"
_STARTING = "starting"
_TIMEOUT = 1500.0
_PROGRESS_SECONDS = 20

Line = tuple[datetime, str]


@dataclass(frozen=True)
class Start:
    """Seconds from the start of `mpirun`."""

    first_rank: float
    all_ranks: float


class Incomplete(Exception):
    """A rank did not print, or the job did not succeed."""


def job(mpi: str, workers: int, starts: int) -> Manifest:
    """A job whose launcher starts a rank in each worker, several times."""
    flavour = FLAVOURS[mpi]
    mpirun = [*flavour.command("sh", ranks=workers), "-c", f'echo "{RANK}"']
    script = f"for start in $(seq {starts}); do echo {_STARTING}; {shlex.join(mpirun)}; done"
    overrides = Overrides(workers=workers, launcher={"command": ["sh", "-ec", script]})
    policy = {"cleanPodPolicy": "None", "backoffLimit": 0}
    made = pi(
        _NAME, flavour, overrides, launcherCreationPolicy="WaitForWorkersReady", runPolicy=policy
    )
    # A launcher that may start again is deleted after its last failure, and its log with it.
    made["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "Never"
    return made


async def measure(lab: Lab, made: Manifest) -> list[Start]:
    """Run such a job to its end."""
    workers = made["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]
    await lab.submit(made)
    async with asyncio.timeout(_TIMEOUT):
        await _end(lab, workers)
    [launcher] = await lab.launchers(_NAME)
    return samples([line async for line in _lines(lab, launcher["metadata"]["name"])], workers)


async def _end(lab: Lab, workers: int) -> None:
    """Wait until the job has succeeded, and say how it progresses."""
    while not await lab.has_condition(_NAME, "Succeeded"):
        if failed := await lab.condition(_NAME, "Failed"):
            raise Incomplete(f"{failed['message']}\n{await lab.log(_NAME)}")
        say(f"{await _running(lab)} of {workers} workers run")
        await asyncio.sleep(_PROGRESS_SECONDS)


async def _running(lab: Lab) -> int:
    counts = (await lab.status(_NAME)).get("replicaStatuses", {}).get("Worker", {})
    return int(counts.get("active", 0))


async def _lines(lab: Lab, pod: str) -> AsyncIterator[Line]:
    """The log with times of the node's clock, which is that of this machine."""
    async for line in lab.client.log(pod, lab.namespace, LogOptions(timestamps=True)):
        moment, _, text = line.decode(errors="replace").partition(" ")
        yield datetime.fromisoformat(moment), text


def samples(lines: Sequence[Line], workers: int) -> list[Start]:
    """The starts that a log tells about; Incomplete if a rank is missing in one of them."""
    begins = [index for index, (_, text) in enumerate(lines) if text == _STARTING]
    ends = [*begins[1:], len(lines)]
    return [_start(lines[begin:end], workers) for begin, end in zip(begins, ends, strict=True)]


def _start(lines: Sequence[Line], workers: int) -> Start:
    began, _ = lines[0]
    printed = sorted(moment for moment, text in lines if text.startswith("rank "))
    if len(printed) != workers:
        raise Incomplete(f"{len(printed)} ranks of {workers} printed")
    return Start(
        first_rank=(printed[0] - began).total_seconds(),
        all_ranks=(printed[-1] - began).total_seconds(),
    )
