"""What happens to a job, as it happens: from the watches of a cluster to a stream of happenings."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, NamedTuple, TypeAlias

from mpi_operator.api import conditions, labels
from mpi_operator.api.decode import decode_leniently
from mpi_operator.api.types import CleanPodPolicy, MPIJob
from mpi_operator.build.ownership import MPI_JOBS
from mpi_operator.kube import errors
from mpi_operator.kube.client import Client, EventType, LogOptions, WatchOptions
from mpi_operator.kube.resources import PODS, Manifest


class JobChanged(NamedTuple):
    """The job says something new about itself."""

    job: MPIJob


class JobDeleted(NamedTuple):
    """Somebody took the job away, or nobody is there any more to ask about it."""

    name: str


class PodChanged(NamedTuple):
    """A pod came, changed or went."""

    name: str
    role: str
    phase: str  # "Gone" when it went
    detail: str = ""  # why it is not further, where that is known


class Line(NamedTuple):
    """A pod printed something, which need not be text."""

    pod: str
    role: str
    printed: bytes

    @property
    def text(self) -> str:
        return self.printed.decode(errors="replace")


# Pods come and go for as long as a job is scaled; so many that are gone are remembered.
_MOST_GONE = 100
# Who follows a log looks at it more often than that.
_LOOK_SECONDS = 0.1

Happening: TypeAlias = JobChanged | JobDeleted | PodChanged | Line


def anybody(pod: Manifest) -> bool:
    """Whoever it is: what it prints is of interest."""
    return True


@asynccontextmanager
async def story(
    client: Client,
    name: str,
    namespace: str,
    *,
    reads: Callable[[Manifest], bool] = anybody,
) -> AsyncIterator["Story"]:
    """Follow a job for as long as the block lasts, and what those of its pods print it `reads`."""
    told = Story(client, name, namespace, reads)
    async with asyncio.TaskGroup() as group:
        told.begin(group)
        try:
            yield told
        finally:
            told.end()


class Story:
    """Happenings, in the order in which they are heard of; a pod's lines in their own order."""

    def __init__(
        self, client: Client, name: str, namespace: str, reads: Callable[[Manifest], bool]
    ) -> None:
        self._client = client
        self._name = name
        self._namespace = namespace
        self._reads = reads
        self._queue: asyncio.Queue[Happening] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._known: dict[str, Manifest] = {}
        self._gone: deque[str] = deque()
        self._starts: dict[str, int] = {}  # how often the container of a pod was started
        self._reading: dict[str, asyncio.Task[None]] = {}
        self._keeps_workers = False

    def begin(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._start(self._follow_job())
        self._start(self._follow_pods())

    def end(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()

    async def next(self) -> Happening:
        return await self._queue.get()

    @property
    def has_more(self) -> bool:
        """Whether something is already known that was not told yet."""
        return not self._queue.empty()

    @property
    def objects(self) -> list[Manifest]:
        """The job and its pods as they were last, also those that are gone."""
        return list(self._known.values())

    async def rest(self, seconds: float) -> AsyncIterator[Happening]:
        """What is still to be said when the job has ended: the last lines of its pods."""
        ending = [task for uid, task in self._reading.items() if not self._stays(uid)]
        if ending:
            await asyncio.wait(ending, timeout=seconds)
        if len(ending) < len(self._reading):
            await asyncio.sleep(_LOOK_SECONDS)  # for what the others have printed by now
        while not self._queue.empty():
            yield self._queue.get_nowait()

    def _stays(self, uid: str) -> bool:
        """Whether a pod goes on when the job has ended: then its log never does."""
        pod = self._known.get(uid) or {}
        if self._keeps_workers and _role(pod) == labels.Role.WORKER:
            return (pod.get("status") or {}).get("phase") == "Running"
        return False

    def _start(self, part: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._group.create_task(part)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _follow_job(self) -> None:
        field = f"metadata.name={self._name}"
        events = self._client.watch(
            MPI_JOBS, self._namespace, WatchOptions(fields=field, initial_events=True)
        )
        try:
            async with aclosing(events):
                async for event in events:
                    if event.type in (EventType.ADDED, EventType.MODIFIED):
                        self._remember(event.object)
                        job = decode_leniently(event.object)
                        policy = job.spec.run_policy.clean_pod_policy
                        self._keeps_workers = policy is CleanPodPolicy.NONE
                        self._queue.put_nowait(JobChanged(job))
                    elif event.type is EventType.DELETED:
                        self._queue.put_nowait(JobDeleted(self._name))
        except errors.KubeError:  # the run that it belongs to is over
            self._queue.put_nowait(JobDeleted(self._name))

    async def _follow_pods(self) -> None:
        selector = labels.as_selector({labels.JOB_NAME: self._name})
        events = self._client.watch(
            PODS, self._namespace, WatchOptions(labels=selector, initial_events=True)
        )
        with suppress(errors.KubeError):  # the run is over, which is told of the job
            async with aclosing(events):
                async for event in events:
                    if event.type is not EventType.BOOKMARK:
                        is_gone = event.type is EventType.DELETED
                        self._remember(event.object, is_gone=is_gone)
                        self._pod(event.object, is_gone=is_gone)

    def _remember(self, manifest: Manifest, *, is_gone: bool = False) -> None:
        uid = manifest["metadata"]["uid"]
        self._known[uid] = manifest
        if is_gone:
            self._gone.append(uid)
        if len(self._gone) > _MOST_GONE:
            self._known.pop(self._gone.popleft(), None)

    def _pod(self, pod: Manifest, *, is_gone: bool) -> None:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        role = _role(pod)
        phase = "Gone" if is_gone else pod.get("status", {}).get("phase", "Pending")
        self._queue.put_nowait(PodChanged(name, role, phase, detail_of(pod)))
        starts = starts_of(pod)
        if starts > self._starts.get(uid, 0) and self._reads(pod):
            self._starts[uid] = starts
            before = self._reading.get(uid)
            self._reading[uid] = self._start(self._read(name, role, before))

    async def _read(self, pod: str, role: str, before: "asyncio.Task[None] | None") -> None:
        """Read one start of a container to its end, after the one before it."""
        if before is not None:
            await asyncio.wait([before])
        lines = self._client.log(pod, self._namespace, LogOptions(follow=True))
        try:
            async with aclosing(lines):
                async for line in lines:
                    self._queue.put_nowait(Line(pod, role, line))
        except errors.KubeError:
            return  # the pod is gone, and with it what it would have said


def _role(pod: Manifest) -> str:
    role: str = ((pod.get("metadata") or {}).get("labels") or {}).get(labels.JOB_ROLE, "")
    return role


def has_ended(job: MPIJob) -> bool:
    return conditions.is_finished(job.status.conditions)


def starts_of(pod: Manifest) -> int:
    """How often the first container of a pod was started, as far as it is said."""
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        state = status.get("state") or {}
        has_started = "running" in state or "terminated" in state
        return int(status.get("restartCount") or 0) + has_started
    return 0


def detail_of(pod: Manifest) -> str:
    status = pod.get("status", {})
    for condition in status.get("conditions") or ():
        if condition.get("reason") == "Unschedulable":
            return str(condition.get("message", ""))
    for container in status.get("containerStatuses") or ():
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("message"):
            return str(waiting["message"])
    return ""
