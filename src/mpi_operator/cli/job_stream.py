"""Everything that happens to a job, as one stream of updates from the watches of a cluster."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from mpi_operator.api import conditions, labels
from mpi_operator.api.decode import decode_leniently
from mpi_operator.api.types import CleanPodPolicy, MPIJob
from mpi_operator.build.ownership import MPI_JOBS
from mpi_operator.kube import errors
from mpi_operator.kube.client import Client, EventType, LogOptions, WatchOptions
from mpi_operator.kube.resources import PODS, Manifest
from mpi_operator.local.default_container import default_container

from .pod_column import failed_init_container


class JobChanged(NamedTuple):
    """The job was added or modified."""

    job: MPIJob


class JobDeleted(NamedTuple):
    """The job was deleted, or its run ended."""

    name: str


class PodChanged(NamedTuple):
    """A pod was added, modified or deleted."""

    name: str
    role: str
    phase: str  # "Gone" after its deletion
    detail: str = ""  # why it is still pending, if that is known


class Line(NamedTuple):
    """A line of a pod's log, which need not be text."""

    pod: str
    role: str
    printed: bytes

    @property
    def text(self) -> str:
        return self.printed.decode(errors="replace")


Update: TypeAlias = JobChanged | JobDeleted | PodChanged | Line

# Deleted pods that are still known. Scaling a job up and down deletes many.
_MAX_GONE = 100
# Longer than the interval at which a log that is followed is read.
_LOG_INTERVAL_SECONDS = 0.1


@asynccontextmanager
async def watch_job(
    client: Client,
    name: str,
    namespace: str,
    *,
    reads_log_of: Callable[[Manifest], bool] = lambda pod: True,
    log: LogOptions = LogOptions(),
) -> AsyncIterator["JobStream"]:
    """Watch a job, its pods and the logs of the selected pods until the block ends."""
    stream = JobStream(client, name, namespace, reads_log_of, log)
    async with asyncio.TaskGroup() as group:
        stream.start(group)
        try:
            yield stream
        finally:
            stream.stop()


class JobStream:
    """Updates in the order in which they arrive; the lines of one pod in their own order."""

    def __init__(
        self,
        client: Client,
        name: str,
        namespace: str,
        reads_log_of: Callable[[Manifest], bool],
        log: LogOptions = LogOptions(),
    ) -> None:
        self._client = client
        self._name = name
        self._namespace = namespace
        self._reads_log_of = reads_log_of
        self._log = replace(log, follow=True)
        self._queue: asyncio.Queue[Update] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._objects: dict[str, Manifest] = {}
        self._gone: deque[str] = deque()
        self._starts: dict[str, int] = {}  # how often the container of each pod was started
        self._log_readers: dict[str, asyncio.Task[None]] = {}
        self._keeps_workers = False

    def start(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._create_task(self._watch_job())
        self._create_task(self._watch_pods())

    def stop(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()

    async def next(self) -> Update:
        return await self._queue.get()

    @property
    def has_more(self) -> bool:
        """Whether the next update is already there."""
        return not self._queue.empty()

    @property
    def objects(self) -> list[Manifest]:
        """The last state of the job and its pods, including deleted ones."""
        return list(self._objects.values())

    async def rest(self, seconds: float) -> AsyncIterator[Update]:
        """The updates that are left when the job has ended: the last lines of its pods."""
        ending = [task for uid, task in self._log_readers.items() if not self._keeps_running(uid)]
        if ending:
            await asyncio.wait(ending, timeout=seconds)
        if len(ending) < len(self._log_readers):
            await asyncio.sleep(_LOG_INTERVAL_SECONDS)  # for what the others have printed by now
        while not self._queue.empty():
            yield self._queue.get_nowait()

    def _keeps_running(self, uid: str) -> bool:
        """Whether a pod outlives the job, so that its log never ends."""
        pod = self._objects.get(uid) or {}
        if self._keeps_workers and role_of(pod) == labels.Role.WORKER:
            return (pod.get("status") or {}).get("phase") == "Running"
        return False

    def _create_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _watch_job(self) -> None:
        field = f"metadata.name={self._name}"
        events = self._client.watch(
            MPI_JOBS, self._namespace, WatchOptions(fields=field, initial_events=True)
        )
        try:
            async with aclosing(events):
                async for event in events:
                    if event.type in (EventType.ADDED, EventType.MODIFIED):
                        self._store(event.object)
                        job = decode_leniently(event.object)
                        policy = job.spec.run_policy.clean_pod_policy
                        self._keeps_workers = policy is CleanPodPolicy.NONE
                        self._queue.put_nowait(JobChanged(job))
                    elif event.type is EventType.DELETED:
                        self._queue.put_nowait(JobDeleted(self._name))
        except errors.KubeError:  # the run of the job has ended
            self._queue.put_nowait(JobDeleted(self._name))

    async def _watch_pods(self) -> None:
        selector = labels.as_selector({labels.JOB_NAME: self._name})
        events = self._client.watch(
            PODS, self._namespace, WatchOptions(labels=selector, initial_events=True)
        )
        with suppress(errors.KubeError):  # the run has ended; the watch of the job reports it
            async with aclosing(events):
                async for event in events:
                    if event.type is not EventType.BOOKMARK:
                        is_gone = event.type is EventType.DELETED
                        self._store(event.object, is_gone=is_gone)
                        self._pod_changed(event.object, is_gone=is_gone)

    def _store(self, manifest: Manifest, *, is_gone: bool = False) -> None:
        uid = manifest["metadata"]["uid"]
        self._objects[uid] = manifest
        if is_gone:
            self._gone.append(uid)
        if len(self._gone) > _MAX_GONE:
            self._objects.pop(self._gone.popleft(), None)

    def _pod_changed(self, pod: Manifest, *, is_gone: bool) -> None:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        role = role_of(pod)
        phase = "Gone" if is_gone else pod.get("status", {}).get("phase", "Pending")
        self._queue.put_nowait(PodChanged(name, role, phase, detail_of(pod)))
        starts = starts_of(pod)
        if starts > self._starts.get(uid, 0) and self._reads_log_of(pod):
            self._starts[uid] = starts
            previous = self._log_readers.get(uid)
            self._log_readers[uid] = self._create_task(self._read_log(name, role, previous))

    async def _read_log(self, pod: str, role: str, previous: "asyncio.Task[None] | None") -> None:
        """Read the log of one start of a container, after that of the previous start."""
        options = self._log
        if previous is not None:
            await asyncio.wait([previous])
            options = replace(options, tail_lines=None)  # the last lines were those of the first
        lines = self._client.log(pod, self._namespace, options)
        try:
            async with aclosing(lines):
                async for line in lines:
                    self._queue.put_nowait(Line(pod, role, line))
        except errors.KubeError:
            return  # the pod was deleted, and its log with it


def role_of(pod: Manifest) -> str:
    return labels.role_of((pod.get("metadata") or {}).get("labels") or {}) or ""


def has_ended(job: MPIJob) -> bool:
    return conditions.is_finished(job.status.conditions)


def starts_of(pod: Manifest) -> int:
    """How often the main container of a pod was started, according to its status."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    if not statuses:
        return 0
    main = default_container(pod)
    status = next((each for each in statuses if each.get("name") == main), statuses[0])
    state = status.get("state") or {}
    has_started = "running" in state or "terminated" in state
    return int(status.get("restartCount") or 0) + has_started


def detail_of(pod: Manifest) -> str:
    """Why a pod is pending or was restarted, if its status says so.

    Not that it waits for a restart: its Job may end it instead.
    """
    status = pod.get("status", {})
    for condition in status.get("conditions") or ():
        if condition.get("reason") == "Unschedulable":
            return str(condition.get("message", ""))
    if failed := failed_init_container(pod):
        return f"init container {failed[0]} failed with exit code {failed[1]}"
    for container in status.get("containerStatuses") or ():
        state = container.get("state") or {}
        waiting = state.get("waiting") or {}
        if waiting.get("message") and waiting.get("reason") != "CrashLoopBackOff":
            return str(waiting["message"])
        ended = (container.get("lastState") or {}).get("terminated") or {}
        if "running" in state and ended:
            return f"restart {container.get('restartCount')} after exit code {ended['exitCode']}"
    return ""
