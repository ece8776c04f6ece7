"""The part of a run's record that is about one of its jobs."""

from collections.abc import Iterator
from pathlib import Path

from mpi_operator.api import labels
from mpi_operator.build.ownership import MPI_JOBS
from mpi_operator.kube.resources import EVENTS, PODS, Manifest
from mpi_operator.local.runs import records
from mpi_operator.local.runs.records import Record


def names(record: Record) -> list[str]:
    """The names of the jobs in a record."""
    return [each["metadata"]["name"] for each in jobs(record)]


def jobs(record: Record) -> Iterator[Manifest]:
    return (each for each in record.objects if each.get("kind") == MPI_JOBS.kind)


def unfinished(record: Record) -> set[str]:
    """The jobs that run, or ran until their run was killed."""
    return {*names(record)} - {*record.ends}


def pods(record: Record, job: str) -> set[str]:
    """The names of the pods of a job."""
    return {
        each["metadata"]["name"]
        for each in record.objects
        if each.get("kind") == PODS.kind and _is_of(job, each)
    }


def without(record: Record, job: str) -> Record:
    """The record without a job, its pods and their events."""
    gone = {
        (each.get("kind"), each["metadata"]["name"]) for each in record.objects if _is_of(job, each)
    }
    kept = [
        each for each in record.objects if not _is_of(job, each) and _regarding(each) not in gone
    ]
    return Record(kept, {name: end for name, end in record.ends.items() if name != job})


def delete(run: Path, job: str) -> None:
    """Delete what is kept of a job of a finished run, and the run with its last job."""
    record = records.read(run)
    left = without(record, job) if record else Record([])
    if record and names(left):
        records.reduce(run, left, pods(record, job))
    else:
        records.delete(run)


def _is_of(job: str, manifest: Manifest) -> bool:
    """Whether an object is a job, or a pod of it."""
    metadata = manifest["metadata"]
    if manifest.get("kind") == MPI_JOBS.kind:
        return bool(metadata["name"] == job)
    return (metadata.get("labels") or {}).get(labels.JOB_NAME) == job


def _regarding(manifest: Manifest) -> tuple[str, str] | None:
    """What an event is about: kind and name; None if the object is no event."""
    if manifest.get("kind") != EVENTS.kind:
        return None
    about = manifest.get("involvedObject") or {}
    return about.get("kind", ""), about.get("name", "")
