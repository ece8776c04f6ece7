"""A job, its operator and its cluster, in virtual time.

The operator is the real `Reconciler` with real caches; the API server, the garbage collector and
the Job controller are those of `mpijob run`. What nodes and users do is done here by hand, one step
at a time, and time passes only when a test says so.
"""

import asyncio
import atexit
import dataclasses
import json
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any, TypeVar

import looptime
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from mpi_operator.api import decode_job, labels
from mpi_operator.api.types import MPIJob
from mpi_operator.build import pod_group
from mpi_operator.build.settings import Settings
from mpi_operator.build.ssh_secret import KeyPair
from mpi_operator.controller.cached_types import MPI_JOBS, PRIORITY_CLASSES
from mpi_operator.controller.caches import Caches
from mpi_operator.controller.execute import Executor
from mpi_operator.controller.job_state import JobStates
from mpi_operator.controller.launcher_log import LogReader
from mpi_operator.controller.metrics import JobMetrics
from mpi_operator.controller.observe import Observer
from mpi_operator.controller.observed import Observed
from mpi_operator.controller.plan import Plan, make_plan
from mpi_operator.controller.publish import Publisher
from mpi_operator.controller.reconcile_limiter import ReconcileLimiter
from mpi_operator.controller.reconciler import Reconciler
from mpi_operator.controller.remember import remember
from mpi_operator.controller.write_limiter import WriteLimiter
from mpi_operator.embedded import MPI_JOB_KIND
from mpi_operator.kube import errors
from mpi_operator.kube.client import Client
from mpi_operator.kube.events import EventRecorder
from mpi_operator.kube.noop_metrics import NOOP_METRICS
from mpi_operator.kube.resources import (
    CONFIG_MAPS,
    JOBS,
    NAMESPACES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Key,
    Manifest,
    Resource,
)
from mpi_operator.local.apiserver.cluster import LocalCluster
from mpi_operator.local.apiserver.served_kinds import Kind
from mpi_operator.local.jobs.job_controller import JobController
from mpi_operator.local.jobs.job_decisions import PodFailureBackoff
from tests.support.direct_cluster import DirectCluster, catch_up, reader, result
from tests.support.faulty_client import FaultyClient, RecordedEvents
from tests.support.observations import NOW, PLAIN, a_manifest, terminated

T = TypeVar("T")

_KEYS = KeyPair(private="private", public="public")
_MAX_RECONCILES = 25
_MAX_WAITS = 60
# How long the operator puts off writing counts, and a new message for the same problem. Later than
# that it only reads the launcher's log, which it does for as long as the launcher runs.
_COUNTS_DEFERRED = 5.0
_MESSAGE_DEFERRED = 30.0


@cache
def virtual_loop() -> asyncio.AbstractEventLoop:
    """The loop of all worlds. Between two steps of a world nothing runs on it."""
    loop = looptime.new_event_loop()
    atexit.register(loop.close)
    return loop


@dataclass(frozen=True)
class Operator:
    """The parts of one operator process that tests use."""

    caches: Caches
    job_states: JobStates
    observer: Observer
    executor: Executor
    reconciler: Reconciler


def start_operator(
    read: Client,
    write: Client,
    events: EventRecorder,
    settings: Settings,
    clock: Callable[[], datetime],
) -> Operator:
    """An operator that remembers nothing."""
    caches = Caches(read, ("",), settings, NOOP_METRICS)
    metrics = JobMetrics(CollectorRegistry())
    observer = Observer(caches)
    executor = Executor(write, caches, settings, WriteLimiter(8), make_keys=lambda: _KEYS)
    reconciler = Reconciler(
        observer,
        executor,
        Publisher(write, caches, events, metrics),
        LogReader(write),
        settings,
        ReconcileLimiter(1),
        metrics,
        clock,
    )
    return Operator(caches, reconciler._states, observer, executor, reconciler)


class World:
    """One job `lab/pi` and its objects.

    `rules=False` gives it an API server that stores whatever it is sent, as one does whose
    CustomResourceDefinition is older than our rules.
    """

    key = Key("lab", "pi")

    def __init__(
        self,
        workers: int | None = 2,
        *,
        settings: Settings = PLAIN,
        rules: bool = True,
        **job: Any,
    ) -> None:
        self.now = NOW
        self.settings = settings
        self.local = LocalCluster(
            _kinds(settings, rules=rules), logs=self._log, clock=lambda: self.now
        )
        self.cluster = DirectCluster(self.local)
        self.client = FaultyClient(self.local)
        self.events = RecordedEvents()
        self.printed = b""  # by every container
        self.wait: Any = None  # after how many seconds to reconcile again
        self.frozen: set[Resource] = set()  # kinds whose watches are silent
        self._jobs = _Jobs(self)
        self.cluster.create(MPI_JOBS, a_manifest(workers, **job))
        self.restart()

    # --- what the operator does -------------------------------------------------------------

    def restart(self) -> None:
        """The operator crashes and starts again, and remembers nothing."""
        self.frozen.clear()
        self._caught_up_with = ""
        self.operator = start_operator(
            reader(self.local),
            self.client.as_client,
            self.events.as_recorder,
            self.settings,
            clock=lambda: self.now,
        )

    def reconcile(self, key: Key = key) -> tuple[list[str], Any]:
        """Reconcile once; the requests to the server, and when to reconcile again."""
        before = len(self.client.requests)
        self.wait = self.run(self._reconcile(key))
        return [str(request) for request in self.client.requests[before:]], self.wait

    def settle(self) -> "World":
        """Reconcile until there are no more requests to the server."""
        for _ in range(_MAX_RECONCILES):
            asked, _ = self.reconcile()
            if not asked:
                return self
        raise AssertionError(f"the world does not settle, it still asks for {asked}")

    def rest(self) -> "World":
        """Settle, let Kubernetes act and time pass, until that changes nothing either."""
        for _ in range(_MAX_WAITS):
            self.settle()
            before = self.version
            self.kubernetes_acts()
            if self.version == before and self._waits_for_nothing():
                return self
            self.pass_time(self.wait or 0)
        raise AssertionError(f"the world does not come to rest, it waits for {self.wait}s")

    def start(self) -> "World":
        """Bring the job to run."""
        self.settle()
        self.all_workers_run()
        self.launcher_runs()
        return self.settle()

    def observe(self) -> Observed | None:
        return self.run(self._observe())

    def plan(self) -> Plan:
        seen = self.observe()
        return make_plan(seen, self.settings, self.now) if seen else Plan()

    def execute(self, job: MPIJob, plan: Plan) -> None:
        """Execute all of a plan, whatever the outcome of a part of it."""
        for stage in plan.stages:
            self.run(self.operator.executor.execute(job, [stage]))

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        loop = virtual_loop()
        # In a hook of the client the loop runs already. What hooks do never waits for anything.
        return result(coroutine) if loop.is_running() else loop.run_until_complete(coroutine)

    async def _observe(self) -> Observed | None:
        """What is observed, and what is remembered of it."""
        self._catch_up()
        seen, states = self.operator.observer.observe(self.key), self.operator.job_states
        if seen is None:
            return None
        state = states.put(seen.job, remember(states.of(seen.job), seen, self.now))
        return dataclasses.replace(seen, state=state)

    async def _reconcile(self, key: Key) -> float | None:
        self._catch_up()
        return await self.operator.reconciler.reconcile(key)

    def _catch_up(self) -> None:
        """Bring the caches up to date, except the frozen ones."""
        version = self.version
        if version == self._caught_up_with:
            return
        for cached in self.operator.caches:
            if cached.resource not in self.frozen:
                catch_up(cached.informers)
        self._caught_up_with = "" if self.frozen else version

    def _waits_for_nothing(self) -> bool:
        if self.wait is None:
            return True
        plan = self.plan()
        deferred = _MESSAGE_DEFERRED if plan.problems else _COUNTS_DEFERRED
        return plan.requeue_after is None and self.wait > deferred

    async def _log(self, *_: Any, **__: Any) -> AsyncGenerator[bytes, None]:
        for line in self.printed.splitlines():
            yield line

    # --- what there is ----------------------------------------------------------------------

    @property
    def version(self) -> str:
        """The version of the whole cluster: it grows with each write."""
        return result(self.local.list(NAMESPACES)).resource_version

    @property
    def manifest(self) -> Manifest:
        return self.cluster.get(MPI_JOBS, self.key)

    @property
    def job(self) -> MPIJob:
        return decode_job(self.manifest)

    @property
    def conditions(self) -> dict[str, str]:
        """The conditions in short: `Running` → `True MPIJobRunning`."""
        found = self.manifest.get("status", {}).get("conditions", [])
        return {each["type"]: f"{each['status']} {each.get('reason', '')}" for each in found}

    @property
    def pods(self) -> dict[str, str]:
        """The worker pods and their phases."""
        found = (pod for pod in self.cluster.all(PODS) if _is_worker(pod))
        return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in found}

    @property
    def launcher(self) -> Any:
        return self.cluster.find(JOBS, Key("lab", "pi-launcher"))

    @property
    def launcher_pods(self) -> list[Manifest]:
        return [pod for pod in self.cluster.all(PODS) if "launcher" in pod["metadata"]["name"]]

    @property
    def launcher_pod(self) -> Key:
        """The launcher's pod that is at work."""
        [pod] = filter(_is_active, self.launcher_pods)
        return _key(pod)

    @property
    def hosts(self) -> frozenset[int]:
        seen = self.observe()
        return seen.listed_hosts if seen else frozenset()

    @property
    def config_map(self) -> Manifest:
        return self.cluster.get(CONFIG_MAPS, Key("lab", "pi-config"))

    @property
    def created(self) -> list[tuple[Resource, str]]:
        """What the operator has created, in order."""
        return self.client.created

    def objects(self) -> dict[tuple[Resource, Key], Manifest]:
        """Everything that the operator may write to."""
        kinds = [MPI_JOBS, PODS, JOBS, SERVICES, CONFIG_MAPS, SECRETS]
        if self.settings.gang_scheduler:
            kinds.append(pod_group.resource(self.settings))
        return {(kind, _key(each)): each for kind in kinds for each in self.cluster.all(kind)}

    def snapshot(self) -> Manifest:
        """All that matters of the world: no uids, versions, times and random names."""
        found: Manifest = {}
        for (resource, key), manifest in self.objects().items():
            if resource == PODS and not _is_worker(manifest):
                del manifest["metadata"]["name"]
                found.setdefault("launcher pods", []).append(_timeless(manifest))
            else:
                found[f"{resource.kind} {key.name}"] = _timeless(manifest)
        found.get("launcher pods", []).sort(key=str)
        return found

    # --- what happens -----------------------------------------------------------------------

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def freeze(self, resource: Resource) -> None:
        """Stop the watches of a kind: the operator only sees the answers to its own writes."""
        self.observe()
        self.frozen.add(resource)

    def thaw(self, resource: Resource) -> None:
        self.frozen.discard(resource)

    def worker_runs(self, index: int, *, ready: bool = True) -> None:
        why_not = {} if ready else {"reason": "ContainersNotReady"}
        conditions = [{"type": "Ready", "status": "True" if ready else "False", **why_not}]
        self._set_worker(index, "Running", conditions=conditions)

    def worker_fails(self, index: int, **status: Any) -> None:
        self._set_worker(index, "Failed", **status)

    def worker_is_evicted(self, index: int) -> None:
        self.worker_fails(index, reason="Evicted", message="The node was low on memory.")

    def worker_vanishes(self, index: int) -> None:
        """A pod is gone without a trace."""
        self.cluster.remove(PODS, _worker(index))

    def worker_is_drained(self, index: int) -> None:
        """A user deletes a pod, with its grace period."""
        with suppress(errors.NotFound):
            self.cluster.delete(PODS, _worker(index))

    def all_workers_run(self) -> None:
        for index in range(self._worker_count()):
            self.worker_runs(index)

    def launcher_runs(self) -> None:
        """The Job controller makes a pod, and it runs."""
        if self._launcher_is_at_work():
            self._jobs.act()
            self._set_launcher_pods("Running")

    def launcher_pod_fails(self, exit_code: int = 0) -> None:
        """A try fails, and the Job controller counts it and makes another pod, or gives up."""
        if self._launcher_is_at_work():
            ended: Manifest = {"containerStatuses": terminated(exit_code)} if exit_code else {}
            self._set_launcher_pods("Failed", **ended)

    def launcher_pod_succeeds(self) -> None:
        """The pod has done its work, and the Job controller has not noticed yet."""
        if self._launcher_is_at_work():
            self._set_launcher_pods("Succeeded", noticed=False)

    def launcher_completes(self) -> None:
        """The launcher runs and succeeds, and the Job controller says so."""
        self.launcher_runs()
        self.launcher_pod_succeeds()
        self.kubernetes_acts()

    def launcher_fails(self) -> None:
        """The launcher fails as often as it may."""
        while self._launcher_is_at_work():
            self.launcher_runs()
            self.launcher_pod_fails()
            self.kubernetes_acts()

    def kubernetes_acts(self) -> None:
        """The Job controller does its work, and nodes confirm that pods have ended."""
        self._jobs.act()
        for pod in self.cluster.all(PODS):
            if "deletionTimestamp" in pod["metadata"]:
                self._end(pod)
        self._jobs.act()

    def scale(self, workers: int) -> None:
        spec = {"mpiReplicaSpecs": {"Worker": {"replicas": workers}}}
        self.cluster.patch(MPI_JOBS, self.key, {"spec": spec})

    def suspend(self) -> None:
        self.cluster.patch(MPI_JOBS, self.key, {"spec": {"runPolicy": {"suspend": True}}})

    def resume(self) -> None:
        self.cluster.patch(MPI_JOBS, self.key, {"spec": {"runPolicy": {"suspend": False}}})

    def _worker_count(self) -> int:
        seen = self.observe()
        return seen.job.spec.worker_count if seen else 0

    def _set_worker(self, index: int, phase: str, **status: Any) -> None:
        pod = self.cluster.find(PODS, _worker(index))
        if pod is not None and pod["status"]["phase"] in ("Pending", "Running"):
            self._set_phase(pod, phase, **status)

    def _set_launcher_pods(self, phase: str, *, noticed: bool = True, **status: Any) -> None:
        for pod in filter(_is_active, self.launcher_pods):
            self._set_phase(pod, phase, **status)
        if noticed:
            self._jobs.act()

    def _set_phase(self, pod: Manifest, phase: str, **status: Any) -> None:
        """Set the phase of a pod as the scheduler and then its node would."""
        key = _key(pod)
        self.cluster.patch(PODS, key, {"spec": {"nodeName": "node-1"}})
        self.cluster.set_status(PODS, key, {"phase": phase, **status})

    def _end(self, pod: Manifest) -> None:
        """The node confirms that a deleted pod has ended."""
        key = _key(pod)
        if _is_running(pod):
            self.cluster.patch_status(PODS, key, {"phase": "Failed"})
        with suppress(errors.NotFound):
            self.cluster.delete_at_once(PODS, key)

    def _launcher_is_at_work(self) -> bool:
        launcher = self.launcher
        if launcher is None or launcher["spec"]["suspend"]:
            return False
        conditions = launcher.get("status", {}).get("conditions", ())
        return not any(each["type"] in ("Complete", "Failed") for each in conditions)


def running_world(workers: int | None = 2, **job: Any) -> World:
    return World(workers, **job).start()


class _Jobs:
    """The Job controller of a world. It acts when the test calls it, and retries at once."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._done: object = None  # the moment for which there is nothing left to do
        no_backoff = PodFailureBackoff(initial=timedelta(0), maximum=timedelta(0))
        self._controller = JobController(
            reader(world.local), backoff=no_backoff, clock=lambda: world.now
        )

    def act(self) -> None:
        """Do all that there is to do now."""
        if self._done != (self._world.version, self._world.now):
            self._world.run(self._act())

    async def _act(self) -> None:
        controller, before = self._controller, ""
        while before != self._world.version:
            before = self._world.version
            catch_up([controller._jobs, controller._pods])
            await controller._reconcile(Key("lab", "pi-launcher"))
        self._done = (before, self._world.now)


def _kinds(settings: Settings, *, rules: bool) -> list[Kind]:
    kinds = [MPI_JOB_KIND if rules else replace(MPI_JOB_KIND, admit=lambda manifest: manifest)]
    kinds += map(Kind, (SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS))
    if settings.gang_scheduler:
        kinds += [Kind(pod_group.resource(settings)), Kind(PRIORITY_CLASSES)]
    return kinds


def _key(manifest: Manifest) -> Key:
    return Key(manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"])


def _worker(index: int) -> Key:
    return Key("lab", f"pi-worker-{index}")


def _is_worker(pod: Manifest) -> bool:
    given = pod["metadata"].get("labels") or {}
    return labels.role_of(given) is labels.Role.WORKER


def _is_active(pod: Manifest) -> bool:
    return _is_running(pod) and "deletionTimestamp" not in pod["metadata"]


def _is_running(pod: Manifest) -> bool:
    return pod["status"]["phase"] in ("Pending", "Running")


_UNREPEATABLE = (
    "uid",
    "controller-uid",
    "batch.kubernetes.io/controller-uid",
    "resourceVersion",
    "generation",
    "observedGeneration",
    "creationTimestamp",
    "deletionTimestamp",
    "startTime",
    "completionTime",
    "lastProbeTime",
    "lastTransitionTime",
    "lastUpdateTime",
    "mpi-operator.kubeflow.org/worker-replacements",
)
_RETRIES = "mpi-operator.kubeflow.org/launcher-retries"


def _timeless(value: Any) -> Any:
    match value:
        case dict():
            return {
                # Of the retries, only the numbers repeat.
                k: json.loads(v)[:2] if k == _RETRIES else _timeless(v)
                for k, v in sorted(value.items())
                if k not in _UNREPEATABLE
            }
        case list():
            return [_timeless(each) for each in value]
        case _:
            return value


def message_of(world: World, kind: str) -> str:
    """The message of a condition."""
    conditions = world.manifest["status"]["conditions"]
    return next(str(each["message"]) for each in conditions if each["type"] == kind)
