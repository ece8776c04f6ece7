"""Completes the names of jobs and runs in a shell.

Reads the records of runs only: connecting to each run would take longer than a person waits after
pressing Tab.
"""

from collections.abc import Iterator
from typing import NamedTuple

from click.shell_completion import CompletionItem

from mpi_operator.cli.known_jobs import job_records
from mpi_operator.local.runs import records, run_directories


class _Job(NamedTuple):
    name: str
    run: str
    state: str


def names(incomplete: str) -> list[CompletionItem]:
    """The names of all jobs that begin like this, those of running ones first."""
    found: dict[str, str] = {}
    for job in _jobs():
        found.setdefault(job.name, job.state)
    return [
        CompletionItem(name, help=state)
        for name, state in found.items()
        if name.startswith(incomplete)
    ]


def runs(incomplete: str, name: str | None) -> list[CompletionItem]:
    """The runs that begin like this; of one job, if its name is known."""
    return [
        CompletionItem(job.run, help=f"{job.name}, {job.state}")
        for job in _jobs()
        if name in (None, job.name) and job.run.startswith(incomplete)
    ]


def _jobs() -> Iterator[_Job]:
    for run in (*run_directories.directories(), *records.finished(run_directories.roots())):
        record = records.read(run)
        for name in job_records.names(record) if record else ():
            end = record.ends.get(name) if record else None
            yield _Job(name, run.name, end.state if end else "Running")
