"""`mpijob logs`: what the launcher, or a worker, has printed."""

import sys
from contextlib import aclosing

import click

from mpi_operator.api import labels, names
from mpi_operator.kube.client import Selector
from mpi_operator.kube.resources import PODS, Manifest

from . import arguments, local_jobs
from .job_stream import Happening, JobChanged, JobDeleted, Line, has_ended, story
from .local_jobs import LocalJob, RunningJob
from .outcome import Refusal, finish

_LAST_LINES_SECONDS = 2.0


@click.command("logs")
@arguments.NAME
@click.option(
    "--follow", "-f", is_flag=True, help="Go on with what is printed from now on, to the job's end."
)
@click.option(
    "--worker",
    type=click.IntRange(min=0),
    metavar="N",
    help="What worker N printed, not the launcher.",
)
@arguments.RUN
def command(name: str, follow: bool, worker: int | None, run: str | None) -> None:
    """Print what a launcher, or a worker, has printed.

    With --follow it waits for one that has not started yet, goes on with its next try if it fails,
    and ends with the job. Of a job that has ended, the log is kept for a while.

    \b
    Examples:
      mpijob logs pi --follow
      mpijob logs pi --worker 1
    """
    finish(_logs(name, run, worker, follow=follow))


async def _logs(name: str, run: str | None, worker: int | None, *, follow: bool) -> None:
    found = await local_jobs.find(name, run)
    role, pod = _wanted(found, worker)
    if follow and isinstance(found, RunningJob):
        await _follow(found, role, pod)
    else:
        await _print(found, role, pod)


async def _print(found: LocalJob, role: labels.Role, pod: str) -> None:
    """What the newest of the pods that are meant has printed so far."""
    selector = labels.as_selector(labels.role_selector(found.job, role))
    field = f"metadata.name={pod}" if pod else ""
    listing = await found.cluster.list(
        PODS, found.namespace, Selector(labels=selector, fields=field)
    )
    newest = max(listing.items, key=_since, default=None)
    if newest is None:
        hint = "yet; --follow waits for it" if isinstance(found, RunningJob) else "that is known of"
        raise Refusal(f"{found.name} has no {pod or role} {hint}")
    async with aclosing(found.cluster.log(_name(newest), found.namespace)) as lines:
        async for line in lines:
            _write(line)


async def _follow(found: RunningJob, role: labels.Role, pod: str) -> None:
    """What the pods that are meant print, until the job ends."""

    def is_meant(other: Manifest) -> bool:
        is_of_role = (other["metadata"].get("labels") or {}).get(labels.JOB_ROLE) == role
        return is_of_role and pod in ("", _name(other))

    async with story(found.cluster, found.name, found.namespace, reads=is_meant) as told:
        while not _is_last(happening := await told.next()):
            _tell(happening)
        async for happening in told.rest(_LAST_LINES_SECONDS):
            _tell(happening)


def _is_last(happening: Happening) -> bool:
    return isinstance(happening, JobDeleted) or (
        isinstance(happening, JobChanged) and has_ended(happening.job)
    )


def _tell(happening: Happening) -> None:
    if isinstance(happening, Line):
        _write(happening.printed)


def _write(line: bytes) -> None:
    out = sys.stdout.buffer  # what was printed need not be text
    out.write(line + b"\n")
    out.flush()


def _wanted(found: LocalJob, worker: int | None) -> tuple[labels.Role, str]:
    """The role, and the name of the pod where it is one of several."""
    if worker is None:
        return labels.Role.LAUNCHER, ""
    count = found.job.spec.worker_count
    if worker >= count:
        numbers = f"numbered 0 to {count - 1}" if count else "so there is nothing to print"
        raise Refusal(f"{found.name} has {count} workers, {numbers}")
    return labels.Role.WORKER, names.worker(found.job, worker)


def _since(pod: Manifest) -> str:
    since: str = pod["metadata"]["creationTimestamp"]
    return since


def _name(pod: Manifest) -> str:
    name: str = pod["metadata"]["name"]
    return name
