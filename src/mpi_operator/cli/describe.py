"""`mpijob describe`: how a job is doing, in plain words."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import click

from mpi_operator.api import labels
from mpi_operator.api.types import Condition
from mpi_operator.kube.client import Selector
from mpi_operator.kube.resources import EVENTS, PODS, Manifest

from . import arguments, local_jobs, printers
from .format import age, gist, table, workers
from .job_stream import detail_of
from .local_jobs import FinishedJob, LocalJob
from .outcome import finish

_INDENT = "  "
_LAST_EVENTS = 20


@click.command("describe")
@arguments.NAME
@arguments.RUN
@arguments.OUTPUT
def command(name: str, run: str | None, output: str) -> None:
    """Tell how a job is doing, or how it ended.

    Its state, its pods, and what happened to it. For programs: the job, its pods and its events.

    \b
    Examples:
      mpijob describe pi
      mpijob describe pi -o yaml
    """
    finish(_describe(name, run, output))


async def _describe(name: str, run: str | None, output: str) -> None:
    found = await local_jobs.find(name, run)
    selector = labels.as_selector(labels.pod_selector(found.job))
    pods, events = await asyncio.gather(
        found.cluster.list(PODS, found.namespace, Selector(labels=selector)),
        found.cluster.list(EVENTS, found.namespace),
    )
    if output == "table":
        told = description(found, pods.items, events.items, datetime.now(UTC))
        click.echo("\n".join(told))
    else:
        items = [printers.as_object(found), *pods.items, *events.items]
        click.echo(printers.as_text(printers.as_list(items), output))


def description(
    found: LocalJob, pods: Sequence[Manifest], events: Sequence[Manifest], now: datetime
) -> Iterator[str]:
    """Lines about a job."""
    job = found.job
    yield f"{job.metadata.name}: {found.summary}"
    yield table(
        [
            ("run", found.run),
            ("state", found.state),
            ("workers", f"{workers(job)} run, slots for {job.spec.slots_per_worker} each"),
            ("MPI", job.spec.mpi_implementation.value),
            ("created", f"{age(job.metadata.creation_timestamp, now)} ago"),
            *([("files", str(found.kept))] if found.kept else []),
        ],
        _INDENT,
    )
    yield from _part("conditions", [_condition(each, now) for each in job.status.conditions])
    is_over = isinstance(found, FinishedJob)
    rows = [_pod(each, now, is_over=is_over) for each in sorted(pods, key=_place)]
    yield from _part("pods", rows)
    newest = sorted(events, key=_when)[-_LAST_EVENTS:]
    yield from _part("events", [_event(each, now) for each in newest])


def _part(title: str, rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"\n{title}"
    yield table(rows, _INDENT) if rows else f"{_INDENT}none"


def _condition(each: Condition, now: datetime) -> tuple[str, ...]:
    answer = {"True": "yes", "False": "no"}.get(each.status, "unknown")
    return (each.type, answer, f"for {age(each.last_transition_time, now)}", gist(each.message))


def _pod(pod: Manifest, now: datetime, *, is_over: bool) -> tuple[str, ...]:
    metadata = pod["metadata"]
    phase = pod.get("status", {}).get("phase", "Pending")
    if "deletionTimestamp" in metadata and not is_over:
        phase = "Ending"
    return (
        metadata["name"],
        phase,
        age(_moment(metadata["creationTimestamp"]), now),
        gist(detail_of(pod)),
    )


def _place(pod: Manifest) -> tuple[str, list[int]]:
    """The launcher first, then the workers by number."""
    role = pod["metadata"].get("labels", {}).get(labels.JOB_ROLE, "")
    return role, [int(number) for number in re.findall(r"\d+$", pod["metadata"]["name"])]


def _event(event: Manifest, now: datetime) -> tuple[str, ...]:
    about = event.get("involvedObject") or {}
    who = f"{about.get('kind', '')} {about.get('name', '')}"
    since = age(_moment(_when(event)), now)
    return (f"{since} ago", who, event.get("reason") or "", gist(event.get("message") or ""))


def _when(event: Manifest) -> str:
    moments = ("lastTimestamp", "eventTime", "firstTimestamp")
    return next((text for field in moments if (text := event.get(field))), "")


def _moment(text: str) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
