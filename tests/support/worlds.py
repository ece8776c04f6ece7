"""A job and its cluster, in no time: the controller's decisions are applied, and things happen.

Everything that decides is the real thing. What writes is not: plans are applied as Kubernetes would
apply them. Whoever wants the writing too takes `ScriptedClient`, on the same cluster.
"""

from contextlib import suppress
from datetime import timedelta
from typing import Any

from mpi_operator.api import labels, names, types
from mpi_operator.api.types import MPIJob
from mpi_operator.build import launcher_job
from mpi_operator.build.settings import Settings
from mpi_operator.build.ssh_secret import KeyPair, ssh_secret
from mpi_operator.controller.actions import Action, Create, CreateKeys, Delete, Patch, Resume
from mpi_operator.controller.cached_types import MPI_JOBS
from mpi_operator.controller.events import JobEvent
from mpi_operator.controller.job_state import JobStates
from mpi_operator.controller.observe import Observer
from mpi_operator.controller.observed import Observed
from mpi_operator.controller.plan import Plan, make_plan
from mpi_operator.controller.status import status_of
from mpi_operator.kube import errors
from mpi_operator.kube.resources import CONFIG_MAPS, JOBS, PODS, SECRETS, Key, Manifest, Resource
from tests.support.cluster import Cluster, caches, timestamp
from tests.support.observations import NOW, PLAIN, a_manifest

_KEYS = KeyPair(private="private", public="public")
_MOST_LOOKS = 25
_MOST_WAITS = 60


class World:
    """One job `lab/pi` and what there is of it."""

    key = Key("lab", "pi")

    def __init__(self, workers: int | None = 2, *, settings: Settings = PLAIN, **job: Any) -> None:
        self.now = NOW
        self.settings = settings
        self.cluster = Cluster(lambda: self.now)
        self.created: list[tuple[Resource, str]] = []  # pods and Jobs, in the order they were made
        self.events: list[JobEvent] = []
        self.cluster.create(MPI_JOBS, a_manifest(workers, **job))
        self.restart()

    # --- what the controller does -----------------------------------------------------------

    def restart(self) -> None:
        """The operator dies and comes back, and remembers nothing."""
        self.memories = JobStates()
        shelves = caches(self.cluster, self.settings)
        self.observer = Observer(shelves, self.memories, clock=lambda: self.now)

    def look(self) -> Observed | None:
        return self.observer.observe(self.key)

    def plan(self) -> Plan:
        seen = self.look()
        return make_plan(seen, self.settings, self.now) if seen else Plan()

    def settle(self) -> "World":
        """Look at the job until that changes nothing."""
        for _ in range(_MOST_LOOKS):
            before = self._versions()
            plan = self.step()
            if self._versions() == before:
                assert plan.actions == (), f"a settled world has a plan: {plan.actions}"
                return self
        raise AssertionError(f"the world does not settle, it still wants {self.plan().actions}")

    def rest(self) -> "World":
        """Settle, let Kubernetes act and time pass, until that changes nothing either."""
        for _ in range(_MOST_WAITS):
            self.settle()
            before = self._versions()
            self.kubernetes_acts()
            wait = self.plan().requeue_after
            if self._versions() == before and wait is None:
                return self
            self.pass_time((wait or timedelta(0)).total_seconds())
        raise AssertionError(f"the world does not come to rest, it waits for {wait}")

    def step(self) -> Plan:
        """One look: observe, plan, apply, report."""
        seen = self.look()
        if seen is None:
            return Plan()
        plan = make_plan(seen, self.settings, self.now)
        for action in plan.actions:
            self.apply(seen.job, action)
        seen = self.observer.around(seen.job, seen.validation_errors) if plan.stages else seen
        status = status_of(seen, plan.problems, self.now)
        if status != seen.job.status and self.cluster.find(MPI_JOBS, self.key):
            changed = self.manifest | {"status": types.status_manifest(status)}
            self.cluster.replace(MPI_JOBS, changed, "status")
        return plan

    def apply(self, job: MPIJob, action: Action) -> None:
        """Do one thing as the cluster would; what does not fit any more is left alone."""
        with suppress(errors.AlreadyExists, errors.NotFound, errors.Conflict):
            self._apply(job, action)
            self.events.extend(action.events if isinstance(action, Create | Patch) else ())

    def _apply(self, job: MPIJob, action: Action) -> None:
        match action:
            case Create():
                self.cluster.create(action.resource, action.manifest)
                self.created.append((action.resource, action.key.name))
            case CreateKeys():
                self.memories.of(job).keys_checked = self.now
                self.cluster.create(SECRETS, ssh_secret(job, _KEYS))
            case Patch():
                patch = action.patch
                metadata = {**patch.get("metadata", {}), "uid": action.uid}
                self.cluster.merge(action.resource, action.key, {**patch, "metadata": metadata})
            case Resume():
                stored = self.cluster.get(JOBS, action.key)
                resumed = launcher_job.resumed(stored, action.job, self.settings)
                self.cluster.replace(JOBS, resumed)
            case Delete():
                self.cluster.delete(
                    action.resource, action.key, uid=action.uid, by_force=action.by_force
                )

    # --- what there is ----------------------------------------------------------------------

    @property
    def manifest(self) -> Manifest:
        return self.cluster.get(MPI_JOBS, self.key)

    @property
    def job(self) -> MPIJob:
        seen = self.look()
        assert seen is not None
        return seen.job

    @property
    def conditions(self) -> dict[str, str]:
        """The conditions in short: `Running` → `True MPIJobRunning`."""
        return {
            each.type: f"{each.status.value} {each.reason}" for each in self.job.status.conditions
        }

    @property
    def pods(self) -> dict[str, str]:
        """The worker pods and their phases."""
        found = (pod for pod in self.cluster.all(PODS) if _is_worker(pod))
        return {pod["metadata"]["name"]: pod.get("status", {}).get("phase", "") for pod in found}

    @property
    def launcher(self) -> Any:
        return self.cluster.find(JOBS, Key("lab", "pi-launcher"))

    @property
    def hosts(self) -> frozenset[int]:
        seen = self.look()
        return seen.listed_hosts if seen else frozenset()

    @property
    def config_map(self) -> Manifest:
        return self.cluster.get(CONFIG_MAPS, Key("lab", "pi-config"))

    def snapshot(self) -> Manifest:
        """All that matters of the world: no uids, versions and times."""
        return {
            f"{resource.kind} {key.name}": _timeless(manifest)
            for (resource, key), manifest in sorted(self.cluster, key=lambda item: str(item[0]))
        }

    def _versions(self) -> list[str]:
        return [manifest["metadata"]["resourceVersion"] for _, manifest in self.cluster]

    # --- what happens -----------------------------------------------------------------------

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def worker_runs(self, index: int, *, ready: bool = True) -> None:
        why_not = {} if ready else {"reason": "ContainersNotReady"}
        conditions = [{"type": "Ready", "status": "True" if ready else "False", **why_not}]
        self._set_pod(index, ("", "Pending", "Running"), "Running", conditions=conditions)

    def worker_fails(self, index: int, **status: Any) -> None:
        self._set_pod(index, ("", "Pending", "Running"), "Failed", **status)

    def worker_is_evicted(self, index: int) -> None:
        self.worker_fails(index, reason="Evicted", message="The node was low on memory.")

    def worker_vanishes(self, index: int) -> None:
        """A pod is gone without a word."""
        self.cluster.remove(PODS, self._worker(index))

    def worker_is_drained(self, index: int) -> None:
        """Somebody else deletes a pod, with its grace period."""
        with suppress(errors.NotFound):
            self.cluster.delete(PODS, self._worker(index))

    def all_workers_run(self) -> None:
        for index in range(self.job.spec.worker_count):
            self.worker_runs(index)

    def launcher_runs(self) -> None:
        """The Job controller makes a pod, and it runs."""
        launcher = self.launcher
        if launcher is None or launcher["spec"].get("suspend") or _is_done(launcher):
            return
        if not self.launcher_pods:
            self.cluster.create(PODS, _launcher_pod(launcher))
        for pod in self.launcher_pods:
            self._set(PODS, pod, {"phase": "Running"})
        started = {"active": 1, "startTime": timestamp(self.now)}
        self._set(JOBS, launcher, launcher.get("status", {}) | started)

    def launcher_pod_fails(self) -> None:
        """A try fails, and the Job controller cleans up after it."""
        launcher = self.launcher
        if launcher is None or _is_done(launcher) or not self.launcher_pods:
            return
        self._end_launcher_pods()
        known = launcher.get("status", {})
        self._set(JOBS, launcher, known | {"active": 0, "failed": known.get("failed", 0) + 1})

    def launcher_pod_succeeds(self) -> None:
        """The pod has done its work, and the Job controller has not looked yet."""
        launcher = self.launcher
        if launcher is None or _is_done(launcher) or launcher["spec"].get("suspend"):
            return
        for pod in self.launcher_pods:
            self._set(PODS, pod, {"phase": "Succeeded"})

    def launcher_completes(self) -> None:
        self._launcher_ends({"type": "Complete"}, completionTime=timestamp(self.now))

    def launcher_fails(self, reason: str = "BackoffLimitExceeded") -> None:
        self._launcher_ends({"type": "Failed", "reason": reason, "message": "it was tried enough"})

    def kubernetes_acts(self) -> None:
        """Nodes confirm that pods have ended, and the Job controller stops what is suspended."""
        for pod in self.cluster.all(PODS):
            if "deletionTimestamp" in pod["metadata"]:
                self.cluster.remove(PODS, Key("lab", pod["metadata"]["name"]))
        launcher = self.launcher
        status = launcher.get("status", {}) if launcher else {}
        if launcher and launcher["spec"].get("suspend") and status.get("active"):
            self._end_launcher_pods()
            self._set(JOBS, launcher, status | {"active": 0})
        if any(pod.get("status", {}).get("phase") == "Succeeded" for pod in self.launcher_pods):
            self.launcher_completes()

    def scale(self, workers: int) -> None:
        spec = {"mpiReplicaSpecs": {"Worker": {"replicas": workers}}}
        self.cluster.merge(MPI_JOBS, self.key, {"spec": spec})

    def suspend(self) -> None:
        self.cluster.merge(MPI_JOBS, self.key, {"spec": {"runPolicy": {"suspend": True}}})

    def resume(self) -> None:
        self.cluster.merge(MPI_JOBS, self.key, {"spec": {"runPolicy": {"suspend": False}}})

    def _worker(self, index: int) -> Key:
        return Key("lab", f"pi-worker-{index}")

    def _set_pod(self, index: int, before: tuple[str, ...], phase: str, **status: Any) -> None:
        pod = self.cluster.find(PODS, self._worker(index))
        if pod is None or pod.get("status", {}).get("phase", "") not in before:
            return
        self.cluster.merge(PODS, self._worker(index), {"spec": {"nodeName": "node-1"}})
        self._set(PODS, pod, {"phase": phase, **status})

    def _set(self, resource: Resource, known: Manifest, status: Manifest) -> None:
        key = Key("lab", known["metadata"]["name"])
        if self.cluster.get(resource, key).get("status") != status:
            self.cluster.replace(
                resource, self.cluster.get(resource, key) | {"status": status}, "status"
            )

    @property
    def launcher_pods(self) -> list[Manifest]:
        return [pod for pod in self.cluster.all(PODS) if "launcher" in pod["metadata"]["name"]]

    def _end_launcher_pods(self) -> None:
        for pod in self.launcher_pods:
            self.cluster.remove(PODS, Key("lab", pod["metadata"]["name"]))

    def _launcher_ends(self, condition: Manifest, **status: Any) -> None:
        launcher = self.launcher
        if launcher is None or _is_done(launcher) or launcher["spec"].get("suspend"):
            return
        ended = {**condition, "status": "True", "lastTransitionTime": timestamp(self.now)}
        known = launcher.get("status", {}) | {"active": 0}
        self._set(JOBS, launcher, known | status | {"conditions": [ended]})


def _is_worker(pod: Manifest) -> bool:
    given = pod["metadata"].get("labels") or {}
    return bool(given.get(labels.JOB_ROLE) == labels.Role.WORKER)


def _is_done(launcher: Manifest) -> bool:
    return bool(launcher.get("status", {}).get("conditions"))


def _launcher_pod(launcher: Manifest) -> Manifest:
    template = launcher["spec"]["template"]
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": launcher["metadata"]["name"],
        "uid": launcher["metadata"]["uid"],
        "controller": True,
    }
    return {
        "metadata": {
            "name": f"{launcher['metadata']['name']}-0",
            "namespace": "lab",
            "labels": template["metadata"]["labels"],
            "ownerReferences": [owner],
        },
        "spec": template["spec"],
    }


_TIMES = (
    "uid",
    "resourceVersion",
    "generation",
    "observedGeneration",
    "creationTimestamp",
    "deletionTimestamp",
    "startTime",
    "completionTime",
    "lastTransitionTime",
    "lastUpdateTime",
    "mpi-operator.kubeflow.org/worker-replacements",
)


def _timeless(value: Any) -> Any:
    match value:
        case dict():
            return {k: _timeless(v) for k, v in sorted(value.items()) if k not in _TIMES}
        case list():
            return [_timeless(each) for each in value]
        case _:
            return value


def names_created(plan: Plan) -> list[str]:
    """What a plan creates, in order."""
    found = []
    for action in plan.actions:
        match action:
            case Create():
                found.append(f"{action.resource.kind} {action.key.name}")
            case CreateKeys():
                found.append(f"Secret {names.ssh_secret(action.job)}")
    return found


def names_deleted(plan: Plan) -> list[str]:
    """What a plan deletes."""
    return [
        f"{action.resource.kind} {action.key.name}"
        for action in plan.actions
        if isinstance(action, Delete)
    ]


def changes(plan: Plan, resource: Resource) -> list[Manifest]:
    """What a plan changes of a kind."""
    return [
        action.patch
        for action in plan.actions
        if isinstance(action, Patch) and action.resource == resource
    ]


def resumes(plan: Plan) -> bool:
    return any(isinstance(action, Resume) for action in plan.actions)


def message_of(world: World, kind: str) -> str:
    """The sentence of a condition."""
    return next(each.message for each in world.job.status.conditions if each.type == kind)
