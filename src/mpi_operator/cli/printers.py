"""Jobs as a table, or as the objects that they are."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from mpi_operator.kube.resources import Manifest

from .format import age, table, workers
from .local_jobs import LocalJob

# Only in what is shown: the job itself knows neither its run nor that nobody runs it any more.
RUN = "mpi-operator.kubeflow.org/run"
STATE = "mpi-operator.kubeflow.org/state"
_HEAD = ("NAME", "RUN", "STATE", "WORKERS", "AGE")


def as_table(jobs: Sequence[LocalJob]) -> str:
    now = datetime.now(UTC)
    return table([_HEAD, *(_row(each, now) for each in jobs)])


def as_object(each: LocalJob) -> Manifest:
    """The job as it is stored; its run, for --run, and its state as annotations."""
    metadata = each.manifest["metadata"]
    shown = {RUN: each.run, STATE: each.state}
    annotations = {**(metadata.get("annotations") or {}), **shown}
    return {**each.manifest, "metadata": {**metadata, "annotations": annotations}}


def as_list(items: Sequence[Manifest]) -> Manifest:
    return {"apiVersion": "v1", "kind": "List", "items": [*items]}


def as_text(shown: Mapping[str, Any], output: str) -> str:
    """An object as JSON or YAML."""
    if output == "json":
        import json  # noqa: PLC0415

        return json.dumps(shown, indent=2)
    import yaml  # noqa: PLC0415

    return yaml.safe_dump(shown, sort_keys=False).rstrip()


def _row(each: LocalJob, now: datetime) -> tuple[str, ...]:
    since = age(each.job.metadata.creation_timestamp, now)
    return (each.name, each.run, each.state, workers(each.job), since)
