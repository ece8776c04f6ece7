"""`mpijob logs`: what the launcher, or a worker, has printed."""

import sys
from contextlib import aclosing

import click

from mpi_operator.api import labels, names
from mpi_operator.kube.client import EventType
from mpi_operator.kube.resources import PODS, Manifest

from . import arguments, local_jobs
from .local_jobs import LocalJob
from .outcome import Refusal, finish
from .story import has_started


@click.command("logs")
@arguments.NAME
@click.option("--follow", "-f", is_flag=True, help="Go on with what is printed from now on.")
@click.option(
    "--worker",
    type=click.IntRange(min=0),
    metavar="N",
    help="What worker N printed, not the launcher.",
)
@arguments.RUN
def command(name: str, follow: bool, worker: int | None, run: str | None) -> None:
    """Print what a launcher, or a worker, has printed.

    With --follow it waits for one that has not started yet, and ends when it ends.

    \b
    Examples:
      mpijob logs pi --follow
      mpijob logs pi --worker 1
    """
    finish(_logs(name, run, worker, follow=follow))


async def _logs(name: str, run: str | None, worker: int | None, *, follow: bool) -> None:
    found = await local_jobs.find(name, run)
    pod = await _pod(found, worker, follow=follow)
    out = sys.stdout.buffer  # what was printed need not be text
    lines = found.cluster.log(pod, found.namespace, follow=follow)
    async with aclosing(lines):
        async for line in lines:
            out.write(line + b"\n")
            out.flush()


async def _pod(found: LocalJob, worker: int | None, *, follow: bool) -> str:
    """The pod that is meant; where it is followed, as soon as it has started."""
    role, field = _wanted(found, worker)
    selector = labels.as_selector(labels.role_selector(found.job, role))
    listing = await found.cluster.list(
        PODS, found.namespace, label_selector=selector, field_selector=field
    )
    newest = max(listing.items, key=_since, default=None)
    if newest is not None and (has_started(newest) or not follow):
        return _name(newest)
    if not follow:
        who = role if worker is None else f"{role} {worker}"
        raise Refusal(f"{found.name} has no {who} yet; --follow waits for it")
    events = found.cluster.watch(
        PODS,
        found.namespace,
        resource_version=listing.resource_version,
        label_selector=selector,
        field_selector=field,
    )
    async with aclosing(events):
        async for event in events:
            is_there = event.type in (EventType.ADDED, EventType.MODIFIED)
            if is_there and has_started(event.object):
                return _name(event.object)
    raise Refusal(f"run {found.run} has ended")


def _wanted(found: LocalJob, worker: int | None) -> tuple[labels.Role, str]:
    """Role and field selector."""
    if worker is None:
        return labels.Role.LAUNCHER, ""
    count = found.job.spec.worker_count
    if worker >= count:
        numbers = f"numbered 0 to {count - 1}" if count else "so there is nothing to print"
        raise Refusal(f"{found.name} has {count} workers, {numbers}")
    return labels.Role.WORKER, f"metadata.name={names.worker(found.job, worker)}"


def _since(pod: Manifest) -> str:
    since: str = pod["metadata"]["creationTimestamp"]
    return since


def _name(pod: Manifest) -> str:
    name: str = pod["metadata"]["name"]
    return name
