"""The whole lifecycle of a job, and the state of the cluster after each step.

It waits for facts, so that an operator may crash at any step. Snapshots have no uids, times,
versions or random names in them, so that two runs can be compared.
"""

import difflib
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mpi_operator.api.annotations import LAUNCHER_RETRIES, LOST_WORKERS, WORKER_REPLACEMENTS
from mpi_operator.kube import errors
from mpi_operator.kube.resources import CONFIG_MAPS, EVENTS, JOBS, PODS, SECRETS, SERVICES, Manifest
from tests.support.jobs import Jobs
from tests.support.mirror import Mirror
from tests.support.mpijobs import MPIJOBS, mpijob

Snapshot: TypeAlias = dict[str, Any]

KINDS = (MPIJOBS, PODS, JOBS, SERVICES, CONFIG_MAPS, SECRETS)
JOB = "pi"
# The owners of the objects of a job; other objects of a namespace do not count.
_OWNED = (PODS, JOBS, SERVICES, CONFIG_MAPS, SECRETS)
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_RANDOM_NAME = re.compile(r"(kube-api-access|-launcher)-[a-z0-9]{5}\b")
# How often each object is created in the lifecycle below. Each worker is replaced once, and all
# pods are created again when the job is resumed. Then one worker is lost, and the launcher is tried
# again. Everything else is created once.
EXPECTED_CREATIONS = {
    "Pod pi-worker-0": 3,
    "Pod pi-worker-1": 4,
    "Pod pi-launcher-?": 3,
    "Job pi-launcher": 2,
    "Service pi": 1,
    "ConfigMap pi-config": 1,
    "Secret pi-ssh": 1,
}

EXPECTED_EVENTS = {
    "MPIJobCreated",
    "MPIJobRunning",
    "WorkerReplaced",
    "LauncherRestarted",
    "MPIJobSuspended",
    "MPIJobResumed",
    "MPIJobSucceeded",
}


@dataclass
class JobLifecycle:
    """The lifecycle of one job in a namespace."""

    mirror: Mirror
    jobs: Jobs
    states: dict[str, Snapshot] = field(default_factory=dict)
    expected: dict[str, Snapshot] = field(default_factory=dict)  # of an undisturbed run

    @property
    def namespace(self) -> str:
        return self.jobs.namespace

    async def run(self) -> None:
        """Run the job from its creation to its clean-up."""
        policy = {"cleanPodPolicy": "All", "ttlSecondsAfterFinished": 1}
        job = mpijob(JOB, runPolicy=policy)
        job["metadata"]["annotations"] = {LOST_WORKERS: "fail"}
        await self.jobs.submit(job)
        await self._fails(f"{JOB}-worker-1")  # before the operator has reported it
        await self._pods_run()
        await self._reached("it runs")
        await self._fails(f"{JOB}-worker-0")
        await self.jobs.run(f"{JOB}-worker-0")
        await self._until(self._is_all_running)
        await self._reached("a worker was replaced")
        await self._set_suspend(True)
        await self._until(self._is_all_at_rest)
        await self._reached("it is suspended")
        await self._set_suspend(False)
        await self._pods_run()
        await self._reached("it was resumed")
        await self._loses(f"{JOB}-worker-1")
        await self._pods_run()
        await self._reached("the launcher was tried again")
        await self.jobs.succeed(self._launcher_pod())
        await self._until(lambda: self._has("Succeeded", "True"))
        await self._until(lambda: not self._phases() and not self._launcher_job())
        await self._reached("it succeeded")

    def creations(self) -> dict[str, int]:
        """How many objects of each name there were."""
        created = Counter[str]()
        for resource in _OWNED:
            for name, _ in self.mirror.uids(resource, self.namespace):
                if name.startswith(JOB):
                    created[f"{resource.kind} {_RANDOM_NAME.sub('-launcher-?', name)}"] += 1
        return dict(created)

    async def event_reasons(self) -> set[str]:
        listing = await self.jobs.client.list(EVENTS, self.namespace)
        about = (e for e in listing.items if e["involvedObject"].get("kind") == "MPIJob")
        return {event["reason"] for event in about}

    async def _fails(self, pod: str) -> None:
        """A pod fails, and another one takes its place."""
        await self._until(lambda: self._uid(pod) != "")
        uid = self._uid(pod)
        await self.jobs.fail(pod, exit_code=137)
        await self._until(lambda: self._uid(pod) not in ("", uid))

    async def _loses(self, pod: str) -> None:
        """The launcher loses a worker and exits with 0, and another try replaces it."""
        uid, launcher = self._uid(pod), (self._launcher_job() or {})["metadata"]["uid"]
        await self.jobs.delete_now(pod)
        await self._until(lambda: self._uid(pod) not in ("", uid))
        await self.jobs.succeed(self._launcher_pod())
        await self._until(lambda: launcher not in str(self._launcher_job()))

    def _uid(self, pod: str) -> str:
        found = self.mirror.get(PODS, pod, self.namespace)
        return found["metadata"]["uid"] if found else ""

    async def _pods_run(self) -> None:
        workers = [f"{JOB}-worker-0", f"{JOB}-worker-1"]
        await self._until(lambda: set(workers) <= set(self._phases()))
        await self.jobs.run(*workers)
        await self._until(lambda: self._launcher_pod() != "")
        await self.jobs.run(self._launcher_pod())
        await self._until(self._is_all_running)

    def _is_all_running(self) -> bool:
        """Everything runs, and the status, the Job and the host list say so."""
        counts = self._job().get("status", {}).get("replicaStatuses", {})
        return (
            self._has("Running", "True")
            and not self._has("Suspended", "True")
            and sorted(self._live_phases().values()) == ["Running"] * 3
            and counts.get("Launcher") == {"active": 1, "succeeded": 0, "failed": 0}
            and counts.get("Worker") == {"active": 2, "succeeded": 0, "failed": 0}
            and self._listed_hosts() == 2
        )

    def _is_all_at_rest(self) -> bool:
        """Nothing runs, and the status, the Job and the host list say so."""
        conditions = (self._launcher_job() or {}).get("status", {}).get("conditions", [])
        is_still = [each["status"] for each in conditions if each["type"] == "Suspended"]
        counts = self._job().get("status", {}).get("replicaStatuses", {})
        return (
            self._has("Suspended", "True")
            and not self._phases()
            and is_still == ["True"]
            and [count["active"] for count in counts.values()] == [0, 0]
        )

    async def _reached(self, name: str) -> None:
        """Keep a snapshot; where it is known what it should be, wait for that."""
        if name in self.expected:
            wanted = self.expected[name]
            try:
                await self.mirror.until(lambda: self.snapshot() == wanted, self.namespace, 20)
            except TimeoutError:
                raise AssertionError(f"{name}: {_difference(wanted, self.snapshot())}") from None
        self.states[name] = self.snapshot()

    def snapshot(self) -> Snapshot:
        """The objects, without what differs from run to run."""
        objects = {
            f"{resource.kind} {each['metadata']['name']}{_suffix(each)}": _normal(each)
            for resource in _OWNED
            for each in self.mirror.all(resource, self.namespace)
            if each["metadata"]["name"].startswith(JOB)
        }
        text = json.dumps({"job": _normal_job(self._job()), **objects}, sort_keys=True)
        text = _UID.sub("<uid>", text.replace(self.namespace, "<namespace>"))
        world: Snapshot = json.loads(_RANDOM_NAME.sub(r"\1-?", text))
        return world

    async def _set_suspend(self, suspend: bool) -> None:
        change = {"spec": {"runPolicy": {"suspend": suspend}}}
        while True:
            try:
                await self.jobs.client.patch(MPIJOBS, JOB, change, self.namespace)
                return
            except errors.Conflict:
                continue

    async def _until(self, fact: Any) -> None:
        try:
            await self.mirror.until(fact, self.namespace, 80)
        except TimeoutError:
            raise AssertionError(json.dumps(self.snapshot(), indent=1)) from None

    def _job(self) -> Manifest:
        return self.mirror.get(MPIJOBS, JOB, self.namespace) or {}

    def _launcher_job(self) -> Manifest | None:
        return self.mirror.get(JOBS, f"{JOB}-launcher", self.namespace)

    def _has(self, kind: str, status: str) -> bool:
        conditions = self._job().get("status", {}).get("conditions", [])
        return any((each["type"], each["status"]) == (kind, status) for each in conditions)

    def _phases(self) -> dict[str, str]:
        pods = self.mirror.all(PODS, self.namespace)
        return {pod["metadata"]["name"]: pod["status"].get("phase", "") for pod in pods}

    def _live_phases(self) -> dict[str, str]:
        """Those of pods that have not ended: the pods of former tries stay."""
        return {name: phase for name, phase in self._phases().items() if phase != "Succeeded"}

    def _launcher_pod(self) -> str:
        names = (name for name in self._live_phases() if name.startswith(f"{JOB}-launcher"))
        return next(names, "")

    def _listed_hosts(self) -> int:
        found = self.mirror.get(CONFIG_MAPS, f"{JOB}-config", self.namespace) or {}
        script: str = found.get("data", {}).get("discover_hosts.sh", "")
        return script.count("echo ")


def _difference(wanted: Snapshot, found: Snapshot) -> str:
    before, after = (
        json.dumps(world, indent=1, sort_keys=True).splitlines() for world in (wanted, found)
    )
    return "\n".join(difflib.unified_diff(before, after, "wanted", "found", lineterm=""))


def _normal_job(job: Manifest) -> Manifest:
    status = dict(job.get("status", {}))
    conditions = [
        (each["type"], each["status"], each["reason"]) for each in status.pop("conditions", [])
    ]
    times = [name for name in ("startTime", "completionTime") if status.pop(name, None)]
    return {"spec": job.get("spec"), "conditions": conditions, "times": times, **status}


def _normal(each: Manifest) -> Manifest:
    metadata = each["metadata"]
    notes = metadata.get("annotations", {})
    normal = {
        "labels": metadata.get("labels"),
        "owners": metadata.get("ownerReferences"),
        "spec": each.get("spec"),
        "replacements": _times_replaced(notes.get(WORKER_REPLACEMENTS)),
        "retries": json.loads(notes.get(LAUNCHER_RETRIES, "[]"))[:2],
        "phase": each.get("status", {}).get("phase"),
        "is ending": "deletionTimestamp" in metadata,
    }
    # Keys are random: that they are there is what matters.
    data = each.get("data")
    return normal | {"data": sorted(data or ()) if each.get("type") else data}


def _suffix(each: Manifest) -> str:
    """What tells the pod of a former try from the current one: their names are random."""
    return " of a former try" if each.get("status", {}).get("phase") == "Succeeded" else ""


def _times_replaced(text: str | None) -> dict[str, int]:
    return {index: count[0] for index, count in json.loads(text or "{}").items()}
