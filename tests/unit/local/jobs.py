"""Jobs and their pods for tests."""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from mpi_operator.kube.resources import Manifest
from mpi_operator.local.jobs.job_objects import TRACKING_FINALIZER, Job, JobPod
from mpi_operator.local.times import timestamp
from tests.unit.local.clusters import START, named


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def stamp(seconds: float) -> str:
    return timestamp(at(seconds))


def job_manifest(name: str = "j", *, restart_policy: str = "Never", **spec: Any) -> Manifest:
    template = {"spec": {"restartPolicy": restart_policy, "containers": [{"name": "main"}]}}
    return named(name, spec={"podReplacementPolicy": "Failed", "template": template, **spec})


def a_job(status: Manifest | None = None, **spec: Any) -> Job:
    """A Job that began at second 0, unless its status says otherwise."""
    begun = {"startTime": stamp(0)} if status is None else status
    manifest = {**job_manifest(**spec), "status": begun}
    manifest["metadata"]["uid"] = "job-uid"
    return msgspec.convert(manifest, Job)


def a_pod(
    phase: str = "Running",
    *,
    uid: str = "p1",
    ready: bool = False,
    tracked: bool = True,
    deleted: bool = False,
    grace: int = 30,
    ended: float | None = None,
    restarts: int = 0,
) -> JobPod:
    """A pod of that Job, made at second 0."""
    deletion = {"deletionTimestamp": stamp(grace), "deletionGracePeriodSeconds": grace}
    state = {"terminated": {"finishedAt": stamp(ended)}} if ended is not None else {}
    manifest = {
        "metadata": {
            "name": f"j-{uid}",
            "namespace": "here",
            "uid": uid,
            "creationTimestamp": stamp(0),
            "finalizers": [TRACKING_FINALIZER] if tracked else [],
            **(deletion if deleted else {}),
        },
        "status": {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "containerStatuses": [{"restartCount": restarts, "state": state}],
        },
    }
    return msgspec.convert(manifest, JobPod)
