"""A node that runs nothing: it takes pods, and moves them through phases as a script says."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from mpi_operator.kube import errors
from mpi_operator.kube.client import Client, DeleteOptions, EventType, WatchOptions
from mpi_operator.kube.resources import PODS, Manifest
from tests.unit.local.clusters import virtual_now

NAME = "this-machine"
# How long a pod runs, and how it ends: its phase and its exit code; None where it never does.
Script = Callable[[Manifest], tuple[float, int] | None]


class ScriptedNode:
    """Takes every pod at once, runs it as long as the script says, and ends it when it is told."""

    def __init__(self, client: Client, script: Script) -> None:
        self._client = client
        self._script = script
        self._lives: dict[str, asyncio.Task[None]] = {}
        self._ending: set[str] = set()

    @property
    def started(self) -> int:
        """How many pods it ever took."""
        return len(self._lives)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            events = self._client.watch(PODS, options=WatchOptions(initial_events=True))
            async with aclosing(events):
                async for event in events:
                    if event.type is not EventType.BOOKMARK:
                        self._take(group, event.type, event.object)

    def _take(self, group: asyncio.TaskGroup, kind: EventType, pod: Manifest) -> None:
        uid = pod["metadata"]["uid"]
        is_going = "deletionTimestamp" in pod["metadata"] or kind is EventType.DELETED
        life = self._lives.get(uid)
        if life is None and not is_going and not _has_ended(pod):
            self._lives[uid] = group.create_task(self._live(pod))
        elif life is not None and is_going and uid not in self._ending:
            life.cancel()
            self._ending.add(uid)
            group.create_task(self._end(pod))

    async def _live(self, pod: Manifest) -> None:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        try:
            await self._client.patch(PODS, name, {"spec": {"nodeName": NAME}}, namespace)
            await self._say(pod, "Running", ready=True)
            plan = self._script(pod)
            if plan is None:
                return
            seconds, code = plan
            await asyncio.sleep(seconds)
            await self._say(pod, "Failed" if code else "Succeeded", code=code)
        except errors.NotFound:
            return

    async def _end(self, pod: Manifest) -> None:
        """What a kubelet does: the last status, and then the confirmation."""
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        try:
            await asyncio.sleep(1)
            if not _has_ended(await self._client.get(PODS, name, namespace)):
                await self._say(pod, "Failed", code=143)
            uid = pod["metadata"]["uid"]
            await self._client.delete(
                PODS, name, namespace, DeleteOptions(uid=uid, grace_period_seconds=0)
            )
        except (errors.NotFound, errors.Conflict):
            return

    async def _say(self, pod: Manifest, phase: str, *, ready: bool = False, code: int = 0) -> None:
        now = virtual_now().strftime("%Y-%m-%dT%H:%M:%SZ")
        has_ended = phase in ("Succeeded", "Failed")
        state: dict[str, Any] = {"running": {"startedAt": now}}
        if has_ended:
            state = {"terminated": {"exitCode": code, "finishedAt": now}}
        status = {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "containerStatuses": [{"name": "main", "restartCount": 0, "state": state}],
        }
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        change = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        await self._client.patch(PODS, name, change, namespace, subresource="status")


def _has_ended(pod: Manifest) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
