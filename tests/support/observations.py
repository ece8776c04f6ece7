"""Observed jobs for tests: a usual job with the one thing that matters changed."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from mpi_operator.api import decode_job, labels, names
from mpi_operator.api.types import MPIJob, MPIJobStatus
from mpi_operator.build import config_map, service, worker_pod
from mpi_operator.build.scripts import EVENT, Event
from mpi_operator.build.settings import Settings
from mpi_operator.controller import pod_state
from mpi_operator.controller.cached_types import LauncherJob, Pod, StoredConfigMap, StoredService
from mpi_operator.controller.job_state import NO_FAILURE, JobState, LastFailure
from mpi_operator.controller.launcher_status import failure_annotation
from mpi_operator.controller.observed import Observed
from mpi_operator.controller.replacement import Count, as_annotation
from mpi_operator.kube.resources import Manifest
from mpi_operator.local.times import timestamp
from tests.support.mpijobs import mpijob

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
A_WHILE = timedelta(minutes=5)
PLAIN = Settings()
VOLCANO = Settings(gang_scheduler="volcano")
PLUGINS = Settings(gang_scheduler="bunch")
# As `test_status` and `test_old_readers` pin them, for all tests in which they are a detail.
RUNNING_MESSAGE = "MPIJob lab/pi is running."
SUCCEEDED_MESSAGE = "MPIJob lab/pi successfully completed."
_REMEMBERED = {field.name for field in fields(JobState)}


def a_manifest(
    workers: int | None = 2,
    *,
    policy: Manifest | None = None,
    annotations: Mapping[str, str] | None = None,
    status: Manifest | None = None,
    generation: int = 1,
    **spec: Any,
) -> Manifest:
    """A stored job `lab/pi`; workers=None leaves out their spec."""
    manifest = mpijob("pi", "lab", runPolicy=policy or {}, **spec)
    if workers is None:
        del manifest["spec"]["mpiReplicaSpecs"]["Worker"]
    else:
        manifest["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = workers
    manifest["metadata"] |= {
        "uid": "uid-of-pi",
        "resourceVersion": "1",
        "generation": generation,
        "annotations": dict(annotations or {}),
    }
    return manifest | {"status": status or {}}


def a_job(workers: Any = 2, **changes: Any) -> MPIJob:
    """The same, typed."""
    return decode_job(a_manifest(workers, **changes))


def a_worker(
    job: MPIJob,
    index: int,
    phase: str = "Running",
    *,
    ready: Any = True,
    uid: Any = "",
    age: Any = A_WHILE,
    deleted: Any = None,
    **status: Any,
) -> Pod:
    """A worker pod; `deleted` is for how long it should have been gone."""
    manifest = worker_pod.worker_pod(job, index, PLAIN)
    manifest["metadata"] |= {
        "uid": uid or f"uid-of-{names.worker(job, index)}",
        "creationTimestamp": timestamp(NOW - age),
        **({"deletionTimestamp": timestamp(NOW - deleted)} if deleted is not None else {}),
    }
    return _pod(manifest, phase, ready=ready, **status)


def workers(job: MPIJob, *phases: str, **more: Any) -> tuple[Pod, ...]:
    """The workers 0, 1, … in these phases."""
    return tuple(a_worker(job, index, phase, **more) for index, phase in enumerate(phases))


def a_launcher(job: MPIJob, *, suspend: bool = False, **status: Any) -> LauncherJob:
    """A launcher Job."""
    manifest = {
        "metadata": {
            "name": names.launcher(job),
            "namespace": job.metadata.namespace,
            "uid": "uid-of-launcher",
        },
        "spec": {"suspend": suspend},
        "status": status,
    }
    return msgspec.convert(manifest, LauncherJob)


def complete(at: datetime = NOW) -> Manifest:
    """The status of a Job that succeeded."""
    condition = {"type": "Complete", "status": "True", "lastTransitionTime": timestamp(at)}
    return {"completionTime": timestamp(at), "conditions": [condition]}


def failed(
    reason: str = "BackoffLimitExceeded",
    message: str = "Job has reached the specified backoff limit",
    at: datetime = NOW,
) -> Manifest:
    """The status of a Job that failed."""
    condition = {
        "type": "Failed",
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": timestamp(at),
    }
    return {"conditions": [condition]}


def a_launcher_pod(
    job: MPIJob, phase: str = "Running", *, number: int = 0, age: timedelta = A_WHILE, **status: Any
) -> Pod:
    """A pod of the launcher Job."""
    manifest = {
        "metadata": {
            "name": f"{names.launcher(job)}-{number}",
            "namespace": job.metadata.namespace,
            "uid": f"uid-of-launcher-{number}",
            "labels": labels.launcher_labels(job),
            "creationTimestamp": timestamp(NOW - age),
        },
        "spec": {},
    }
    return _pod(manifest, phase, ready=True, **status)


def started(seconds: float, *, name: str = "mpi") -> list[Manifest]:
    """The status of a container that has run for so long."""
    since = timestamp(NOW - timedelta(seconds=seconds))
    return [{"name": name, "state": {"running": {"startedAt": since}}}]


def waiting(reason: str, message: str = "", *, name: str = "mpi") -> list[Manifest]:
    """The status of a container that does not start."""
    return [{"name": name, "state": {"waiting": {"reason": reason, "message": message}}}]


def terminated(
    exit_code: int = 1, message: str = "", *, name: str = "mpi", **more: Any
) -> list[Manifest]:
    """The status of a container that ended."""
    ended = {"exitCode": exit_code, "message": message, **more}
    return [{"name": name, "state": {"terminated": ended}}]


def remote_shell_line(
    event: Event, worker: str = "pi-worker-1", seconds: int | None = None, cause: str = ""
) -> str:
    """A line of the remote shell for the operator."""
    waited = f" seconds={seconds}" if seconds is not None else ""
    return f"{EVENT}{event} worker={worker}{waited}{f' cause={cause}' if cause else ''}"


def unschedulable(message: str = "0/3 nodes are available") -> list[Manifest]:
    """The conditions of a pod that finds no node."""
    return [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
        }
    ]


def a_config_map(
    job: MPIJob,
    hosts: Iterable[int] = (),
    counts: Mapping[int, Count] | None = None,
    failure: LastFailure = NO_FAILURE,
) -> StoredConfigMap:
    """The ConfigMap that lists these hosts."""
    notes = {**as_annotation(counts or {}), **failure_annotation(failure)}
    manifest = config_map.config_map(job, hosts, PLAIN, notes)
    manifest["metadata"]["uid"] = "uid-of-config"
    return msgspec.convert(manifest, StoredConfigMap)


def a_service(job: MPIJob) -> StoredService:
    manifest = service.service(job)
    manifest["metadata"]["uid"] = "uid-of-service"
    return msgspec.convert(manifest, StoredService)


def observed(
    job: MPIJob,
    workers: Any = (),
    *,
    hosts: Any = None,
    counts: Any = None,
    failure: Any = NO_FAILURE,
    **more: Any,
) -> Observed:
    """A job that has what pods need. Its ConfigMap lists those that run, unless `hosts` is given.

    Fields of `JobState` go into the state.
    """
    pods_: tuple[Pod, ...] = tuple(workers)
    remembered = {name: more.pop(name) for name in _REMEMBERED & more.keys()}
    running = {
        names.worker_index(job, pod.metadata.name) for pod in pods_ if pod_state.is_running(pod)
    }
    listed = (index for index in running if index is not None) if hosts is None else hosts
    return Observed(
        **{
            "job": job,
            "worker_pods": pods_,
            "service": a_service(job),
            "config_map": a_config_map(job, listed, counts, failure),
            "state": JobState(**{"keys_checked": NOW, **remembered}),
            **more,
        }
    )


def with_status(job: MPIJob, status: MPIJobStatus) -> MPIJob:
    """The job as it is once the status is stored."""
    return replace(job, status=status)


def _pod(manifest: Manifest, phase: str, *, ready: bool, **status: Any) -> Pod:
    why_not = {} if ready else {"reason": "ContainersNotReady"}
    conditions = [{"type": "Ready", "status": "True" if ready else "False", **why_not}]
    return msgspec.convert(
        manifest
        | {
            "status": {"phase": phase, **status, "conditions": status.get("conditions", conditions)}
        },
        Pod,
    )
