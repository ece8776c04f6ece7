"""Hundreds of jobs, in every state in which a job settles, and a node that runs their pods."""

import asyncio
import functools
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from mpi_operator.api.annotations import MAX_WORKER_REPLACEMENTS, WORKER_REPLACEMENTS
from mpi_operator.kube import errors
from mpi_operator.kube.resources import (
    CONFIG_MAPS,
    JOBS,
    PODS,
    SECRETS,
    SERVICES,
    Manifest,
    Resource,
)
from tests.support.jobs import Jobs
from tests.support.mirror import Mirror
from tests.support.mpijobs import MPIJOBS, mpijob, without

JOB_NAME = "training.kubeflow.org/job-name"
ROLE = "training.kubeflow.org/job-role"
_ONE = {"replicas": 1}

# The states in which jobs settle. The first part of a job's name is its kind.
KINDS = ("done", "kept", "cleaned", "running", "suspended", "hurt", "lame", "taken")


def job(kind: str, number: int) -> Manifest:
    """A job of a kind."""
    made = mpijob(f"{kind}-{number}", worker=_ONE, **_specs().get(kind, {}))
    if kind == "lame":
        made["metadata"]["annotations"] = {MAX_WORKER_REPLACEMENTS: "0"}
    return without(made, "spec.mpiReplicaSpecs.Worker") if kind == "done" else made


def _specs() -> dict[str, dict[str, Any]]:
    return {
        "done": {"runLauncherAsWorker": True, "runPolicy": {"ttlSecondsAfterFinished": 0}},
        "kept": {"runPolicy": {"cleanPodPolicy": "None"}},
        "cleaned": {"runPolicy": {"cleanPodPolicy": "All"}},
        "suspended": {"runPolicy": {"suspend": True}},
    }


class Node:
    """Sets each new pod to the phase that its kind of job needs."""

    def __init__(self, jobs: Jobs, mirror: Mirror) -> None:
        self._jobs = jobs
        self._moved: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed: set[str] = set()
        mirror.listeners.append(self._on_change)

    def _on_change(self, resource: Resource, pod: Manifest) -> None:
        metadata = pod["metadata"]
        is_mine = metadata.get("namespace") == self._jobs.namespace
        if resource != PODS or not is_mine or metadata["uid"] in self._moved:
            return
        self._moved.add(metadata["uid"])
        move = self._move(metadata["labels"][JOB_NAME], metadata["labels"][ROLE])
        task = asyncio.create_task(self._do(move, metadata["name"]))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _move(self, name: str, role: str) -> Callable[[str], Awaitable[None]]:
        kind = name.split("-", maxsplit=1)[0]
        if role == "launcher":
            is_done = kind in ("done", "kept", "cleaned")
            return self._jobs.succeed if is_done else self._jobs.run
        if kind == "lame" or (kind == "hurt" and name not in self._failed):
            self._failed.add(name)
            return self._jobs.fail
        return self._jobs.run

    async def _do(self, move: Callable[[str], Awaitable[None]], pod: str) -> None:
        try:
            await move(pod)
        except errors.NotFound:
            return  # cleaned up already


class ManyJobs:
    """Waits until the jobs of a namespace have settled."""

    def __init__(self, mirror: Mirror, namespace: str) -> None:
        self._mirror = mirror
        self._namespace = namespace

    async def settle(self, names: Iterable[str], seconds: float) -> None:
        """Wait until the operator has nothing more to do for any of these jobs."""
        async with asyncio.timeout(seconds):
            for name in names:
                await self._mirror.until(
                    functools.partial(self._has_settled, name), self._namespace, seconds
                )

    def _has_settled(self, name: str) -> bool:
        status = (self._get(MPIJOBS, name) or {}).get("status", {})
        conditions = {c["type"]: (c["status"], c["reason"]) for c in status.get("conditions", ())}
        counts = status.get("replicaStatuses", {})
        runs = conditions.get("Running", ("", ""))
        launcher = self._get(JOBS, f"{name}-launcher")
        worker = self._get(PODS, f"{name}-worker-0")
        match name.split("-", maxsplit=1)[0]:
            case "done":
                return "Succeeded" in conditions and launcher is None
            case "kept":
                return "Succeeded" in conditions and worker is not None
            case "cleaned":
                return "Succeeded" in conditions and worker is None
            case "suspended":
                return "Suspended" in conditions and _is_suspended(launcher)
            case "taken":
                return runs == ("False", "ErrResourceExists")
            case "lame":
                is_reported = counts.get("Worker", {}).get("failed") == 1 and runs[0] == "False"
                return bool(is_reported and counts.get("Launcher", {}).get("active") == 1)
            case "hurt":
                return _runs(runs, counts) and self._hosts(name) == (1, 1)
        return _runs(runs, counts) and self._hosts(name) == (1, 0)

    def _hosts(self, name: str) -> tuple[int, int]:
        """How many hosts are listed, and how many workers were replaced."""
        found = self._get(CONFIG_MAPS, f"{name}-config") or {}
        notes = found.get("metadata", {}).get("annotations", {}).get(WORKER_REPLACEMENTS, "{}")
        return found["data"]["discover_hosts.sh"].count("echo "), len(json.loads(notes))

    def _get(self, resource: Resource, name: str) -> Manifest | None:
        return self._mirror.get(resource, name, self._namespace)


async def clone(jobs: Jobs, original: str, copy: str) -> None:
    """Store a copy of a finished job with its objects and status; no operator may run."""
    children = [(SERVICES, ""), (CONFIG_MAPS, "-config"), (SECRETS, "-ssh")]
    job = await jobs.job(original)
    stored = await jobs.submit(_renamed(job, original, copy))
    status = {**_renamed(job, original, copy), "metadata": stored["metadata"]}
    await jobs.client.replace(MPIJOBS, status, subresource="status")
    uids = {job["metadata"]["uid"]: stored["metadata"]["uid"]}
    for resource, suffix in children:
        child = await jobs.client.get(resource, f"{original}{suffix}", jobs.namespace)
        await jobs.client.create(resource, _renamed(child, original, copy, uids))


def _renamed(
    manifest: Manifest, old: str, new: str, uids: Mapping[str, str] | None = None
) -> Manifest:
    """The manifest of an object, as if it belonged to another job."""
    text = json.dumps(manifest)
    for before, after in {old: new, **(uids or {})}.items():
        text = text.replace(before, after)
    renamed: Manifest = json.loads(text)
    for name in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        renamed["metadata"].pop(name, None)
    return renamed


def _runs(runs: tuple[str, str], counts: Manifest) -> bool:
    return runs[0] == "True" and [counts[role]["active"] for role in ("Launcher", "Worker")] == [
        1,
        1,
    ]


def _is_suspended(launcher: Manifest | None) -> bool:
    conditions = (launcher or {}).get("status", {}).get("conditions", [])
    return any((each["type"], each["status"]) == ("Suspended", "True") for each in conditions)


async def take_names(jobs: Jobs, count: int) -> None:
    """Create foreign Services with the names that `taken` jobs need."""
    for number in range(count):
        manifest = {
            "metadata": {"name": f"taken-{number}", "namespace": jobs.namespace},
            "spec": {"clusterIP": "None", "selector": {"app": "other"}},
        }
        await jobs.client.create(SERVICES, manifest)
