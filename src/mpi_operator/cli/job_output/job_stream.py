"""Everything that happens to a job, as one stream of updates from the watches of a cluster."""

import asyncio
import re
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
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
from mpi_operator.local.kubelet.error_pipe import Chunk
from mpi_operator.local.mpi_noise import MpiNoise, failed_rank

from .line_splitting import split_lines
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
    """A line that a pod printed, which need not be text, or a part of one."""

    pod: str
    role: str
    printed: bytes
    end: bytes = b"\n"  # or a carriage return; empty if the line is not complete
    is_stderr: bool = False
    container: str = ""  # of an init container

    @property
    def text(self) -> str:
        return self.printed.decode(errors="replace")

    @property
    def source(self) -> tuple[str, str, bool]:
        """The stream that it was printed to: pieces of other streams may come between."""
        return self.pod, self.container, self.is_stderr

    @property
    def is_line_feed(self) -> bool:
        """Nothing but the end of a line: the second half of it if a carriage return came before."""
        return not self.printed and self.end == b"\n"


class RankFailed(NamedTuple):
    """The MPI has reported that a rank failed."""

    pod: str  # of the launcher
    rank: str


Update: TypeAlias = JobChanged | JobDeleted | PodChanged | Line | RankFailed

# Reads what a container prints: pod, namespace, container.
Reader: TypeAlias = Callable[[str, str, str], AsyncGenerator[Chunk, None]]

# Deleted pods that are still known. Scaling a job up and down deletes many.
_MAX_GONE = 100
# Longer than the interval at which a log that is followed is read.
_LOG_INTERVAL_SECONDS = 0.1
_LAST_LINES_SECONDS = 2.0
# Updates that wait to be shown, before logs are not read any further.
_MOST_AHEAD = 1000


@asynccontextmanager
async def watch_job(
    client: Client,
    name: str,
    namespace: str,
    *,
    reads_log_of: Callable[[Manifest], bool] = lambda pod: True,
    log: LogOptions = LogOptions(),
    reader: Reader | None = None,
) -> AsyncIterator["JobStream"]:
    """Watch a job, its pods and the logs of the selected pods until the block ends.

    Without a reader the client is asked for the log with these options; it knows whole lines only.
    """
    stream = JobStream(client, name, namespace, reads_log_of, reader or _log_reader(client, log))
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
        reader: Reader,
    ) -> None:
        self._client = client
        self._name = name
        self._namespace = namespace
        self._reads_log_of = reads_log_of
        self._reader = reader
        self._queue: asyncio.Queue[Update] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._objects: dict[str, Manifest] = {}
        self._gone: deque[str] = deque()
        self._starts: dict[tuple[str, str], int] = {}  # how often each container was started
        self._log_readers: dict[str, asyncio.Task[None]] = {}  # the last one of each pod
        self._keeps_workers = False

    def start(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._create_task(self._watch_job())
        self._create_task(self._watch_pods())

    def stop(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()

    @property
    def job(self) -> str:
        """The name of the job."""
        return self._name

    async def next(self) -> Update:
        return self._taken(await self._queue.get())

    def _taken(self, update: Update) -> Update:
        self._queue.task_done()
        return update

    @property
    def has_more(self) -> bool:
        """Whether the next update is already there."""
        return not self._queue.empty()

    @property
    def objects(self) -> list[Manifest]:
        """The last state of the job and its pods, including deleted ones."""
        return list(self._objects.values())

    async def rest(self, seconds: float = _LAST_LINES_SECONDS) -> AsyncIterator[Update]:
        """The updates that are left when the job has ended: the last lines of its pods.

        There may be many, so the time is that in which none comes.
        """
        logs = {task for uid, task in self._log_readers.items() if not self._keeps_running(uid)}
        has_others = len(logs) < len(self._log_readers)
        while logs := {task for task in logs if not task.done()}:
            update = asyncio.ensure_future(self._queue.get())
            ended = asyncio.FIRST_COMPLETED
            done, _ = await asyncio.wait({update, *logs}, timeout=seconds, return_when=ended)
            if update in done:
                yield self._taken(update.result())
            else:
                update.cancel()
            if not done:
                break
        if has_others:
            await asyncio.sleep(_LOG_INTERVAL_SECONDS)  # for what the others have printed by now
        while not self._queue.empty():
            yield self._taken(self._queue.get_nowait())

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
        if not self._reads_log_of(pod):
            return
        for container, starts in starts_of(pod).items():
            if starts > self._starts.get((uid, container), 0):
                self._starts[uid, container] = starts
                blank = Line(name, role, b"", container=container)
                previous = self._log_readers.get(uid)
                self._log_readers[uid] = self._create_task(self._read_log(blank, previous))

    async def _read_log(self, blank: Line, previous: "asyncio.Task[None] | None") -> None:
        """Read the log of one start of a container, after that of the previous start."""
        if previous is not None:
            await asyncio.wait([previous])
        chunks = self._reader(blank.pod, self._namespace, blank.container)
        noise = MpiNoise()
        with suppress(errors.KubeError):  # the pod was deleted, and its log with it
            async with aclosing(chunks):
                async for chunk in chunks:
                    line = blank._replace(is_stderr=chunk.is_stderr)
                    for printed, end in split_lines(chunk.printed):
                        self._put(line, noise, printed, end)
                    if self._queue.qsize() > _MOST_AHEAD:
                        await self._queue.join()  # the log itself keeps what is not wanted yet

    def _put(self, blank: Line, noise: MpiNoise, printed: bytes, end: bytes) -> None:
        if left := noise.cleaned(printed, end):
            self._queue.put_nowait(blank._replace(printed=left[0], end=left[1]))
        if rank := failed_rank(printed):
            self._queue.put_nowait(RankFailed(blank.pod, rank))


def role_of(pod: Manifest) -> str:
    return labels.role_of((pod.get("metadata") or {}).get("labels") or {}) or ""


def by_role_and_index(pod: Manifest) -> tuple[str, list[int]]:
    """Sort key for pods that are shown: the launcher first, then the workers by index."""
    return role_of(pod), [int(index) for index in re.findall(r"\d+$", pod["metadata"]["name"])]


def has_ended(job: MPIJob) -> bool:
    return conditions.is_finished(job.status.conditions)


def starts_of(pod: Manifest) -> dict[str, int]:
    """How often each container was started; the main one is "", others but init ones are left out.

    A container that never ran has nothing to read, also if its status says why it could not.
    """
    status = pod.get("status") or {}
    main = default_container(pod)
    init = {each.get("name"): _starts(each) for each in status.get("initContainerStatuses") or ()}
    mains = (each for each in status.get("containerStatuses") or () if each.get("name") == main)
    return {**init, "": sum(map(_starts, mains))}


def _starts(container: Manifest) -> int:
    state = container.get("state") or {}
    has_started = "running" in state or "terminated" in state
    return int(container.get("restartCount") or 0) + has_started


def _log_reader(client: Client, options: LogOptions) -> Reader:
    seen: set[tuple[str, str]] = set()

    async def read(pod: str, namespace: str, container: str) -> AsyncGenerator[Chunk, None]:
        chosen = replace(options, follow=True, container=container)
        if (pod, container) in seen:
            chosen = replace(chosen, tail_lines=None)  # the last lines were those of the first
        seen.add((pod, container))
        lines = client.log(pod, namespace, chosen)
        async with aclosing(lines):
            async for line in lines:
                yield Chunk(line + b"\n")

    return read


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
