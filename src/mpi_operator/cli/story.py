"""What happens to a job, as it happens: from the watches of a cluster to a stream of happenings."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from mpi_operator.api import conditions, labels
from mpi_operator.api.reading import salvaged_job
from mpi_operator.api.types import MPIJob
from mpi_operator.build.ownership import MPI_JOBS
from mpi_operator.kube import errors
from mpi_operator.kube.client import Client, EventType
from mpi_operator.kube.resources import PODS, Manifest


@dataclass(frozen=True)
class JobChanged:
    """The job says something new about itself."""

    job: MPIJob


@dataclass(frozen=True)
class JobDeleted:
    """Somebody took the job away."""

    name: str


@dataclass(frozen=True)
class PodChanged:
    """A pod came, changed or went."""

    name: str
    role: str
    phase: str  # "Gone" when it went
    detail: str = ""  # why it is not further, where that is known


@dataclass(frozen=True)
class Line:
    """A pod printed something."""

    pod: str
    role: str
    text: str


Happening: TypeAlias = JobChanged | JobDeleted | PodChanged | Line


@asynccontextmanager
async def story(client: Client, name: str, namespace: str) -> AsyncIterator["Story"]:
    """Follow a job for as long as the block lasts."""
    told = Story(client, name, namespace)
    async with asyncio.TaskGroup() as group:
        told.begin(group)
        try:
            yield told
        finally:
            told.end()


class Story:
    """Happenings, in the order in which they are heard of; a pod's lines in their own order."""

    def __init__(self, client: Client, name: str, namespace: str) -> None:
        self._client = client
        self._name = name
        self._namespace = namespace
        self._queue: asyncio.Queue[Happening] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._reading: dict[str, asyncio.Task[None]] = {}  # by the uid of the pod

    def begin(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._start(self._follow_job())
        self._start(self._follow_pods())

    def end(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()

    async def next(self) -> Happening:
        return await self._queue.get()

    async def rest(self, seconds: float) -> AsyncIterator[Happening]:
        """What is still to be said when the job has ended: the last lines of its pods."""
        reading = tuple(self._reading.values())
        if reading:
            await asyncio.wait(reading, timeout=seconds)
        while not self._queue.empty():
            yield self._queue.get_nowait()

    def _start(self, part: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._group.create_task(part)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _follow_job(self) -> None:
        field = f"metadata.name={self._name}"
        events = self._client.watch(
            MPI_JOBS, self._namespace, field_selector=field, initial_events=True
        )
        async with aclosing(events):
            async for event in events:
                if event.type in (EventType.ADDED, EventType.MODIFIED):
                    self._queue.put_nowait(JobChanged(salvaged_job(event.object)))
                elif event.type is EventType.DELETED:
                    self._queue.put_nowait(JobDeleted(self._name))

    async def _follow_pods(self) -> None:
        selector = labels.as_selector({labels.JOB_NAME: self._name})
        events = self._client.watch(
            PODS, self._namespace, label_selector=selector, initial_events=True
        )
        async with aclosing(events):
            async for event in events:
                if event.type is not EventType.BOOKMARK:
                    self._pod(event.object, is_gone=event.type is EventType.DELETED)

    def _pod(self, pod: Manifest, *, is_gone: bool) -> None:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        role = pod["metadata"].get("labels", {}).get(labels.JOB_ROLE, "")
        phase = "Gone" if is_gone else pod.get("status", {}).get("phase", "Pending")
        self._queue.put_nowait(PodChanged(name, role, phase, detail_of(pod)))
        if uid not in self._reading and has_started(pod):
            self._reading[uid] = self._start(self._read(name, role))

    async def _read(self, pod: str, role: str) -> None:
        lines = self._client.log(pod, self._namespace, follow=True)
        try:
            async with aclosing(lines):
                async for line in lines:
                    self._queue.put_nowait(Line(pod, role, line.decode(errors="replace")))
        except errors.KubeError:
            return  # the pod is gone, and with it what it would have said


def has_ended(job: MPIJob) -> bool:
    return conditions.is_finished(job.status.conditions)


def has_started(pod: Manifest) -> bool:
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    states = (status.get("state") or {} for status in statuses)
    return any("running" in state or "terminated" in state for state in states)


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
