"""Jobs as a table, or as objects for programs."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from mpi_operator.cli.format import age, table
from mpi_operator.kube.resources import Manifest

from .local_jobs import LocalJob

# Annotations that exist only in the output: they are about the run, not part of the job.
RUN = "mpi-operator.kubeflow.org/run"
STATE = "mpi-operator.kubeflow.org/state"
HEAD = ("NAME", "RUN", "STATE", "WORKERS", "AGE")


def as_table(jobs: Sequence[LocalJob]) -> str:
    now = datetime.now(UTC)
    return table([HEAD, *(row(each, now) for each in jobs)])


def as_object(each: LocalJob) -> Manifest:
    """The stored job, with its run (for --run) and its state as annotations."""
    metadata = each.manifest["metadata"]
    ours = {RUN: each.run, STATE: each.state}
    annotations = {**(metadata.get("annotations") or {}), **ours}
    return {**each.manifest, "metadata": {**metadata, "annotations": annotations}}


def as_list(items: Sequence[Manifest]) -> Manifest:
    return {"apiVersion": "v1", "kind": "List", "items": [*items]}


def as_text(value: Mapping[str, Any], output: str) -> str:
    """An object as JSON or YAML."""
    from mpi_operator.cli.manifests import manifest_text  # noqa: PLC0415 — tables do not need it

    text = manifest_text.as_json(value) if output == "json" else manifest_text.as_yaml(value)
    return text.rstrip()


def row(each: LocalJob, now: datetime) -> tuple[str, ...]:
    """A job as a row of a table."""
    created = age(each.job.metadata.creation_timestamp, now)
    return (each.name, each.run, each.state, each.workers, created)
