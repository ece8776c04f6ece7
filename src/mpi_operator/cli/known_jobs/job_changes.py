"""`mpijob list --watch`: the jobs, and then each one that has changed."""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TypeAlias

import click

from mpi_operator.cli.format import table

from . import local_jobs, printers
from .local_jobs import LocalJob

# Each run has a cluster of its own, so there is nothing to watch them all with.
_POLL_SECONDS = 0.5

# What is shown of each job, by its run and name, without its age.
Shown: TypeAlias = Mapping[tuple[str, str], tuple[str, ...]]


async def show(output: str) -> None:
    """Print the jobs, and then each one that changes, until a signal ends the process."""
    known: Shown = {}
    while True:
        jobs = await local_jobs.all_jobs()
        changed = [each for each in jobs if known.get(_key(each)) != _facts(each)]
        if changed and output == "table":
            click.echo(as_rows(changed, with_head=not known))
        elif changed:
            click.echo("\n".join(_documents(changed, output)))
        known = {**known, **{_key(each): _facts(each) for each in jobs}}
        await asyncio.sleep(_POLL_SECONDS)


def as_rows(jobs: Iterable[LocalJob], *, with_head: bool) -> str:
    """Rows of a table. Later ones line up with the first, unless a name is very long."""
    now = datetime.now(UTC)
    rows = [printers.HEAD, *(printers.row(each, now) for each in jobs)]
    lines = table(rows, widths=(24, 12, 12, 8, 4)).splitlines()
    return "\n".join(lines if with_head else lines[1:])


def _documents(jobs: Iterable[LocalJob], output: str) -> Iterable[str]:
    for each in jobs:
        text = printers.as_text(printers.as_object(each), output)
        yield text if output == "json" else f"---\n{text}"


def _key(job: LocalJob) -> tuple[str, str]:
    return job.run, job.name


def _facts(job: LocalJob) -> tuple[str, ...]:
    return printers.row(job, datetime.now(UTC))[:-1]
