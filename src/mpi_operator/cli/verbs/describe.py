"""`mpijob describe`: the state, pods and events of a job."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import click

from mpi_operator.api import labels
from mpi_operator.api.types import Condition
from mpi_operator.cli.command_errors import asynchronous
from mpi_operator.cli.format import age, gist, table
from mpi_operator.cli.job_output.job_stream import by_role_and_index, detail_of
from mpi_operator.cli.job_output.pod_column import ENDED, state_of
from mpi_operator.cli.known_jobs import local_jobs, printers, reported_progress
from mpi_operator.cli.known_jobs.local_jobs import FinishedJob, LocalJob
from mpi_operator.kube.client import Selector
from mpi_operator.kube.resources import EVENTS, PODS, Manifest

from . import arguments

_INDENT = "  "
_LAST_EVENTS = 20


@click.command("describe")
@arguments.NAME
@arguments.RUN
@arguments.OUTPUT
@asynchronous
async def describe_command(name: str, run: str | None, output: str) -> None:
    """Show the state, pods and events of a job.

    With -o json or -o yaml, print the job, its pods and its events as a List.

    \b
    Examples:
      mpijob describe pi
      mpijob describe pi -o yaml
    """
    found = await local_jobs.find(name, run)
    selector = labels.as_selector(labels.pod_selector(found.job))
    pods, events = await asyncio.gather(
        found.cluster.list(PODS, found.namespace, Selector(labels=selector)),
        found.cluster.list(EVENTS, found.namespace),
    )
    if output == "table":
        progress = await reported_progress.read(found, pods.items)
        lines = description(found, pods.items, events.items, datetime.now(UTC), progress)
        click.echo("\n".join(lines))
    else:
        items = [printers.as_object(found), *pods.items, *events.items]
        click.echo(printers.as_text(printers.as_list(items), output))


def description(
    found: LocalJob,
    pods: Sequence[Manifest],
    events: Sequence[Manifest],
    now: datetime,
    progress: str = "",
) -> Iterator[str]:
    """A job in lines of text."""
    job, worker_count = found.job, found.job.spec.worker_count
    yield found.summary
    yield table(
        [
            ("run", found.run),
            ("state", found.state),
            *([("progress", progress)] if progress else []),
            ("workers", found.workers if found.is_over else f"{found.workers} running"),
            ("slots", f"{job.spec.slots_per_worker}{' per worker' if worker_count else ''}"),
            ("MPI", job.spec.mpi_implementation.value),
            ("created", f"{age(job.metadata.creation_timestamp, now)} ago"),
            *([("files", str(found.kept))] if found.kept else []),
        ],
        _INDENT,
    )
    yield from _section("conditions", [_condition(each, now) for each in job.status.conditions])
    is_over = isinstance(found, FinishedJob)
    current = current_pods(pods, worker_count)
    rows = [_pod(each, now, is_over=is_over) for each in current]
    yield from _section("pods", rows)
    newest = sorted(events, key=_time)[-_LAST_EVENTS:]
    yield from _section("events", [_event(each, now) for each in newest])


def _section(title: str, rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"\n{title}"
    yield table(rows, _INDENT) if rows else f"{_INDENT}none"


def _condition(each: Condition, now: datetime) -> tuple[str, ...]:
    answer = {"True": "yes", "False": "no"}.get(each.status, "unknown")
    return (each.type, answer, f"for {age(each.last_transition_time, now)}", gist(each.message))


def _pod(pod: Manifest, now: datetime, *, is_over: bool) -> tuple[str, ...]:
    metadata = pod["metadata"]
    state = state_of(pod, is_over=is_over)
    detail = "" if state == ENDED else gist(detail_of(pod))
    return metadata["name"], state, age(_parsed(metadata["creationTimestamp"]), now), detail


def current_pods(pods: Sequence[Manifest], worker_count: int) -> list[Manifest]:
    """The pods that a job had last: not those of workers that it was scaled down from.

    A record also has pods that were deleted, and of a worker that was replaced all of them.
    """
    newest = {each["metadata"]["name"]: each for each in sorted(pods, key=_created)}
    kept = (each for each in newest.values() if _index(each) < worker_count)
    return sorted(kept, key=by_role_and_index)


def _index(pod: Manifest) -> int:
    """The index of a worker; -1 for the launcher."""
    role, numbers = by_role_and_index(pod)
    return numbers[0] if role == labels.Role.WORKER and numbers else -1


def _created(pod: Manifest) -> str:
    return str(pod["metadata"]["creationTimestamp"])


def _event(event: Manifest, now: datetime) -> tuple[str, ...]:
    about = event.get("involvedObject") or {}
    regarding = f"{about.get('kind', '')} {about.get('name', '')}"
    since = age(_parsed(_time(event)), now)
    return (f"{since} ago", regarding, event.get("reason") or "", gist(event.get("message") or ""))


def _time(event: Manifest) -> str:
    fields = ("lastTimestamp", "eventTime", "firstTimestamp")
    return next((text for field in fields if (text := event.get(field))), "")


def _parsed(text: str) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
