"""Jobs as a table, or as the objects that they are."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

import yaml

from mpi_operator.kube.resources import Manifest

from .local_jobs import LocalJob
from .words import age, state, table, workers

# Only in what is shown: the job itself does not know which run it belongs to.
RUN = "mpi-operator.kubeflow.org/run"
_HEAD = ("NAME", "RUN", "STATE", "WORKERS", "AGE")


def as_table(jobs: Sequence[LocalJob]) -> str:
    now = datetime.now(UTC)
    return table([_HEAD, *(_row(each, now) for each in jobs)])


def as_object(each: LocalJob) -> Manifest:
    """The job as it is stored, and its run as an annotation, for --run."""
    metadata = each.manifest["metadata"]
    annotations = {**(metadata.get("annotations") or {}), RUN: each.run}
    return {**each.manifest, "metadata": {**metadata, "annotations": annotations}}


def as_text(shown: Manifest, output: str) -> str:
    """An object as JSON or YAML."""
    if output == "json":
        return json.dumps(shown, indent=2)
    return yaml.safe_dump(shown, sort_keys=False).rstrip()


def _row(each: LocalJob, now: datetime) -> tuple[str, ...]:
    job = each.job
    since = age(job.metadata.creation_timestamp, now)
    return (each.name, each.run, state(job), workers(job), since)
