"""`mpijob logs`: print the log of the launcher or of a worker."""

import sys
from contextlib import aclosing

import click

from mpi_operator.api import labels, names
from mpi_operator.kube.client import Selector
from mpi_operator.kube.resources import PODS, Manifest

from . import arguments, local_jobs
from .job_stream import JobChanged, JobDeleted, Line, Update, has_ended, role_of, watch_job
from .local_jobs import LocalJob, RunningJob
from .outcome import CommandError, asynchronous

_LAST_LINES_SECONDS = 2.0


@click.command("logs")
@arguments.NAME
@click.option("--follow", "-f", is_flag=True, help="Print new lines until the job ends.")
@click.option(
    "--worker",
    type=click.IntRange(min=0),
    metavar="N",
    show_default="the launcher",
    help="Print the log of worker N.",
)
@arguments.RUN
@asynchronous
async def logs_command(name: str, follow: bool, worker: int | None, run: str | None) -> None:
    """Print the log of the launcher or of a worker.

    With --follow, wait for a pod that has not started yet, continue with the next attempt if one
    fails, and exit when the job ends. The logs of finished jobs are kept for a few days.

    \b
    Examples:
      mpijob logs pi --follow
      mpijob logs pi --worker 1
    """
    found = await local_jobs.find(name, run)
    role, pod = _role_and_pod(found, worker)
    if follow and isinstance(found, RunningJob):
        await _follow(found, role, pod)
    else:
        await _print(found, role, pod)


async def _print(found: LocalJob, role: labels.Role, pod: str) -> None:
    """Print what the newest of the selected pods has printed so far."""
    selector = labels.as_selector(labels.pod_selector(found.job))
    field = f"metadata.name={pod}" if pod else ""
    listing = await found.cluster.list(
        PODS, found.namespace, Selector(labels=selector, fields=field)
    )
    of_role = (each for each in listing.items if role_of(each) == role)
    newest = max(of_role, key=lambda each: each["metadata"]["creationTimestamp"], default=None)
    if newest is None:
        raise _no_log(found, pod or role)
    async with aclosing(found.cluster.log(newest["metadata"]["name"], found.namespace)) as lines:
        async for line in lines:
            _write(line)


def _no_log(found: LocalJob, pod: str) -> CommandError:
    if not isinstance(found, RunningJob):
        return CommandError(f"no log of {found}: its {pod} was never created")
    return CommandError(
        f"no log of {found} yet: its {pod} has not been created",
        f"mpijob logs {found.name} --follow  # waits for it",
    )


async def _follow(found: RunningJob, role: labels.Role, pod: str) -> None:
    """Print what the selected pods print, until the job ends."""

    def is_selected(other: Manifest) -> bool:
        return role_of(other) == role and pod in ("", other["metadata"]["name"])

    async with watch_job(
        found.cluster, found.name, found.namespace, reads_log_of=is_selected
    ) as stream:
        while not _is_last(update := await stream.next()):
            _show(update)
        async for update in stream.rest(_LAST_LINES_SECONDS):
            _show(update)


def _is_last(update: Update) -> bool:
    return isinstance(update, JobDeleted) or (
        isinstance(update, JobChanged) and has_ended(update.job)
    )


def _show(update: Update) -> None:
    if isinstance(update, Line):
        _write(update.printed)


def _write(line: bytes) -> None:
    out = sys.stdout.buffer  # a log need not be text
    out.write(line + b"\n")
    out.flush()


def _workers(count: int) -> str:
    match count:
        case 0:
            return "it has no workers"
        case 1:
            return "its only worker is 0"
        case _:
            return f"its workers are 0 to {count - 1}"


def _role_and_pod(found: LocalJob, worker: int | None) -> tuple[labels.Role, str]:
    """The role, and the name of the pod if it is a worker."""
    if worker is None:
        return labels.Role.LAUNCHER, ""
    count = found.job.spec.worker_count
    if worker >= count:
        raise CommandError(f"no worker {worker} in {found}: {_workers(count)}")
    return labels.Role.WORKER, names.worker(found.job, worker)
