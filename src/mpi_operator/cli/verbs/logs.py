"""`mpijob logs`: print the logs of the launcher, of a worker or of all pods."""

import math
import sys
from collections.abc import Iterable
from contextlib import aclosing

import click
from msgspec.structs import replace

from mpi_operator.api import labels, names
from mpi_operator.cli.command_errors import CommandError, asynchronous
from mpi_operator.cli.duration import Duration
from mpi_operator.cli.job_output.job_stream import (
    JobChanged,
    JobDeleted,
    Line,
    Update,
    by_role_and_index,
    has_ended,
    role_of,
    starts_of,
    watch_job,
)
from mpi_operator.cli.job_output.progress import short
from mpi_operator.cli.known_jobs import local_jobs
from mpi_operator.cli.known_jobs.local_jobs import LocalJob, RunningJob
from mpi_operator.kube.client import LogOptions, Selector
from mpi_operator.kube.resources import PODS, Manifest

from . import arguments


@click.command("logs")
@arguments.NAME
@click.option("--follow", "-f", is_flag=True, help="Print new lines until the job ends.")
@arguments.WORKER
@click.option(
    "--all", "-a", "is_all", is_flag=True, help="Print the logs of all pods, with their names."
)
@click.option(
    "--tail", type=click.IntRange(min=0), metavar="N", help="Print only the last N lines."
)
@click.option(
    "--since",
    type=Duration(),
    metavar="DURATION",
    help="Print only lines that are not older than this, such as 90, 10m or 1h.",
)
@click.option("--timestamps", is_flag=True, help="Print the time of each line.")
@arguments.RUN
@asynchronous
async def logs_command(
    name: str,
    follow: bool,
    worker: int | None,
    is_all: bool,
    tail: int | None,
    since: float | None,
    timestamps: bool,
    run: str | None,
) -> None:
    """Print the log of the launcher, of a worker, or of all pods.

    With --follow, wait for a pod that has not started yet, continue with the next attempt if one
    fails, and exit when the job ends. The logs of finished jobs are kept for a few days. Times are
    exact to a quarter of a second.

    \b
    Examples:
      mpijob logs pi --follow
      mpijob logs pi --worker 1 --tail 20
      mpijob logs pi --all --since 10m --timestamps
    """
    if is_all and worker is not None:
        raise click.UsageError("--all and --worker cannot be combined.")
    found = await local_jobs.find(name, run)
    selected = _Selected(found, worker, is_all=is_all)
    options = LogOptions(
        timestamps=timestamps,
        tail_lines=tail,
        since_seconds=None if since is None else math.ceil(since),
    )
    if follow and isinstance(found, RunningJob):
        await _follow(found, selected, options)
    else:
        await _print(found, selected, options)


class _Selected:
    """The pods whose logs are printed."""

    def __init__(self, found: LocalJob, worker: int | None, *, is_all: bool) -> None:
        self.is_all = is_all
        self.role = labels.Role.LAUNCHER if worker is None else labels.Role.WORKER
        self.pod = ""
        if worker is not None:
            arguments.check_worker(found, worker)
            self.pod = names.worker(found.job, worker)

    def __contains__(self, pod: Manifest) -> bool:
        is_named = self.pod in ("", pod["metadata"]["name"])
        return self.is_all or (role_of(pod) == self.role and is_named)

    def newest(self, pods: Iterable[Manifest]) -> list[Manifest]:
        """The pods to read: of several launchers, and of several pods of one name, the last."""
        found: dict[str, Manifest] = {}
        for pod in sorted(pods, key=lambda each: str(each["metadata"]["creationTimestamp"])):
            role = role_of(pod)
            key = pod["metadata"]["name"] if role == labels.Role.WORKER else role
            if pod in self:
                found[key] = pod
        return sorted(found.values(), key=by_role_and_index)


async def _print(found: LocalJob, selected: _Selected, options: LogOptions) -> None:
    """Print what the newest of the selected pods have printed so far."""
    selector = labels.as_selector(labels.pod_selector(found.job))
    listing = await found.cluster.list(PODS, found.namespace, Selector(labels=selector))
    pods = selected.newest(listing.items)
    if not pods:
        raise _no_log(found, selected.pod or selected.role)
    for pod in pods:
        name = pod["metadata"]["name"]
        for container in _started(pod, options):
            chosen = replace(options, container=container)
            async with aclosing(found.cluster.log(name, found.namespace, chosen)) as lines:
                async for line in lines:
                    _write(Line(name, role_of(pod), line), with_name=selected.is_all)


def _started(pod: Manifest, options: LogOptions) -> list[str]:
    """The containers to read: init containers first, but only the last one if its tail is asked."""
    started = [container for container, starts in starts_of(pod).items() if starts]
    return (started[-1:] if options.tail_lines is not None else started) or [""]


def _no_log(found: LocalJob, pod: str) -> CommandError:
    if not isinstance(found, RunningJob):
        return CommandError(f"no log of {found}: its {pod} was never created")
    return CommandError(
        f"no log of {found} yet: its {pod} has not been created",
        f"mpijob logs {found.name} --follow  # waits for it",
    )


async def _follow(found: RunningJob, selected: _Selected, options: LogOptions) -> None:
    """Print what the selected pods print, until the job ends."""
    async with watch_job(
        found.cluster,
        found.name,
        found.namespace,
        reads_log_of=selected.__contains__,
        log=options,
    ) as stream:
        while not _is_last(update := await stream.next()):
            _show(update, selected)
        async for update in stream.rest():
            _show(update, selected)


def _is_last(update: Update) -> bool:
    return isinstance(update, JobDeleted) or (
        isinstance(update, JobChanged) and has_ended(update.job)
    )


def _show(update: Update, selected: _Selected) -> None:
    if isinstance(update, Line):
        _write(update, with_name=selected.is_all)


def _write(line: Line, *, with_name: bool) -> None:
    out = sys.stdout.buffer  # a log need not be text
    name = f"{short(line.pod, line.role)} | ".encode() if with_name else b""
    out.write(name + line.printed + b"\n")
    out.flush()
