"""The Job controller, for Jobs of one pod: retries, deadlines, suspension, TTL.

    Jobs, pods ──► informers ──► queue ──► decide (job_decisions) ──► create, delete, write status

All its state is in the cluster, so it can be killed at any write and started again. It works on any
`Client`.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

import msgspec

from mpi_operator.kube import errors
from mpi_operator.kube.cache import Change
from mpi_operator.kube.client import Client, DeleteOptions, Propagation, Selector
from mpi_operator.kube.informer import Informer
from mpi_operator.kube.queue_workers import run_workers
from mpi_operator.kube.resources import JOBS, PODS, Key, Manifest
from mpi_operator.kube.workqueue import WorkQueue
from mpi_operator.local.job_labels import CONTROLLER_UID, tracking_labels
from mpi_operator.local.times import now

from .job_decisions import DEFAULT_BACKOFF, Decision, PodFailureBackoff, decide
from .job_objects import (
    CONTROLLER_NAME,
    TRACKING_FINALIZER,
    Job,
    JobPod,
)

_BY_JOB = "job"
_CONFLICT_RETRY_SECONDS = 0.05


class JobController:
    """Reconciles the Jobs of one namespace, or of all of them."""

    def __init__(
        self,
        client: Client,
        *,
        namespace: str = "",
        backoff: PodFailureBackoff = DEFAULT_BACKOFF,
        clock: Callable[[], datetime] = now,
        concurrency: int = 4,
    ) -> None:
        self._client = client
        self._backoff = backoff
        self._clock = clock
        self._concurrency = concurrency
        self._queue: WorkQueue[Key] = WorkQueue("jobs")
        self._jobs = Informer(client, JOBS, Job, namespace=namespace)
        self._pods = Informer(
            client,
            PODS,
            JobPod,
            namespace=namespace,
            selector=Selector(labels=CONTROLLER_UID),
            indexes={_BY_JOB: _jobs_of},
        )
        self._jobs.on_change(self._job_changed)
        self._pods.on_change(self._pod_changed)

    async def run(self) -> None:
        """Reconcile Jobs until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._jobs.run())
            group.create_task(self._pods.run())
            # Before that, a pod that is missing from the cache would be created a second time.
            await self._jobs.synced()
            await self._pods.synced()
            await run_workers(self._queue, self._reconcile, self._concurrency)

    def _job_changed(self, change: Change[Job]) -> None:
        known = change.new or change.old
        if known is not None:
            self._queue.add(known.metadata.key)

    def _pod_changed(self, change: Change[JobPod]) -> None:
        known = change.new or change.old
        key = _job_of(known) if known is not None else None
        if key is not None:
            self._queue.add(key)

    async def _reconcile(self, key: Key) -> float | None:
        """Bring one Job a step further; return after how many seconds to requeue it."""
        job = self._jobs.store.get(key)
        pods = self._pods.store.where(_BY_JOB, str(key))
        if job is not None and job.spec.managed_by != CONTROLLER_NAME:
            return None
        uid = job.metadata.uid if job is not None else None
        try:
            for pod in pods:
                if pod.is_tracked and _owner_uid(pod) != uid:
                    await self._untrack(pod)  # no Job will count it
            controlled = [pod for pod in pods if _owner_uid(pod) == uid]
            return await self._sync(job, controlled) if job is not None else None
        except (errors.Conflict, errors.NotFound):
            return _CONFLICT_RETRY_SECONDS  # the caches are behind: try again when they are not

    async def _sync(self, job: Job, pods: list[JobPod]) -> float | None:
        decision = decide(job, pods, self._clock(), self._backoff)
        await self._execute(job, decision)
        wait = decision.requeue_after
        return None if wait is None else wait.total_seconds()

    async def _execute(self, job: Job, decision: Decision) -> None:
        if decision.create:
            self._pods.wrote(await self._client.create(PODS, pod_of(job)))
        if decision.status != job.status:
            stored = _status_manifest(job, decision)
            self._jobs.wrote(await self._client.replace(JOBS, stored, subresource="status"))
        for pod in decision.delete:
            await self._delete(pod)
        for pod in decision.untrack:
            await self._untrack(pod)
        if decision.expire:
            await self._expire(job)

    async def _delete(self, pod: JobPod) -> None:
        name, namespace = pod.metadata.name, pod.metadata.namespace
        with suppress(errors.NotFound):
            await self._client.delete(PODS, name, namespace, DeleteOptions(uid=pod.uid))
            # A reconcile before the watch event would otherwise take it for an active pod.
            self._pods.wrote(await self._client.get(PODS, name, namespace))

    async def _untrack(self, pod: JobPod) -> None:
        """Remove the tracking finalizer of a pod that the status has recorded."""
        metadata = pod.metadata
        left = [each for each in metadata.finalizers if each != TRACKING_FINALIZER]
        change = {
            "uid": metadata.uid,
            # The patch replaces the whole list, so it must be based on the current one.
            "resourceVersion": metadata.resource_version,
            "finalizers": left or None,
        }
        with suppress(errors.NotFound):
            stored = await self._client.patch(
                PODS, metadata.name, {"metadata": change}, metadata.namespace
            )
            self._pods.wrote(stored)

    async def _expire(self, job: Job) -> None:
        metadata = job.metadata
        with suppress(errors.NotFound):
            await self._client.delete(
                JOBS,
                metadata.name,
                metadata.namespace,
                DeleteOptions(uid=metadata.uid, propagation=Propagation.FOREGROUND),
            )


def pod_of(job: Job) -> Manifest:
    """The next pod of a Job. The API server generates the end of its name."""
    template, name = job.spec.template, job.metadata.name
    given = template.get("metadata") or {}
    owner = {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "name": name,
        "uid": job.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {
            "generateName": f"{name}-",
            "namespace": job.metadata.namespace,
            "labels": {**(given.get("labels") or {}), **tracking_labels(name, job.metadata.uid)},
            "annotations": given.get("annotations") or {},
            "finalizers": [*(given.get("finalizers") or ()), TRACKING_FINALIZER],
            "ownerReferences": [owner],
        },
        "spec": template.get("spec") or {},
    }


def _status_manifest(job: Job, decision: Decision) -> Manifest:
    metadata = job.metadata
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
        },
        "status": msgspec.to_builtins(decision.status, str_keys=True),
    }


def _owner_uid(pod: JobPod) -> str:
    owner = pod.metadata.controller
    return owner.uid if owner else ""


def _job_of(pod: JobPod) -> Key | None:
    owner = pod.metadata.controller
    is_job = owner is not None and owner.kind == JOBS.kind
    return Key(pod.metadata.namespace, owner.name) if owner and is_job else None


def _jobs_of(pod: JobPod) -> list[str]:
    key = _job_of(pod)
    return [str(key)] if key else []
