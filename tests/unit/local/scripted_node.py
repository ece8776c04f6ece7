"""A node that runs no processes: it moves pods through their phases by a script."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from mpi_operator.kube import errors
from mpi_operator.kube.client import Client, DeleteOptions, EventType, WatchOptions
from mpi_operator.kube.resources import PODS, Manifest
from tests.unit.local.clusters import virtual_now

NAME = "this-machine"
# How long a pod runs and its exit code; None if it never ends.
Script = Callable[[Manifest], tuple[float, int] | None]


class ScriptedNode:
    """Binds every pod, runs it as long as the script says, and terminates it when it is deleted."""

    def __init__(self, client: Client, script: Script) -> None:
        self._client = client
        self._script = script
        self._pods: dict[str, asyncio.Task[None]] = {}
        self._terminating: set[str] = set()

    @property
    def started(self) -> int:
        """How many pods it ever started."""
        return len(self._pods)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            events = self._client.watch(PODS, options=WatchOptions(initial_events=True))
            async with aclosing(events):
                async for event in events:
                    if event.type is not EventType.BOOKMARK:
                        self._handle(group, event.type, event.object)

    def _handle(self, group: asyncio.TaskGroup, kind: EventType, pod: Manifest) -> None:
        uid = pod["metadata"]["uid"]
        is_deleted = "deletionTimestamp" in pod["metadata"] or kind is EventType.DELETED
        task = self._pods.get(uid)
        if task is None and not is_deleted and not _has_terminated(pod):
            self._pods[uid] = group.create_task(self._run_pod(pod))
        elif task is not None and is_deleted and uid not in self._terminating:
            task.cancel()
            self._terminating.add(uid)
            group.create_task(self._terminate(pod))

    async def _run_pod(self, pod: Manifest) -> None:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        try:
            await self._client.patch(PODS, name, {"spec": {"nodeName": NAME}}, namespace)
            await self._write_status(pod, "Running", ready=True)
            plan = self._script(pod)
            if plan is None:
                return
            seconds, code = plan
            await asyncio.sleep(seconds)
            await self._write_status(pod, "Failed" if code else "Succeeded", code=code)
        except errors.NotFound:
            return

    async def _terminate(self, pod: Manifest) -> None:
        """What a kubelet does: write the last status, then confirm the deletion."""
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        try:
            await asyncio.sleep(1)
            if not _has_terminated(await self._client.get(PODS, name, namespace)):
                await self._write_status(pod, "Failed", code=143)
            uid = pod["metadata"]["uid"]
            await self._client.delete(
                PODS, name, namespace, DeleteOptions(uid=uid, grace_period_seconds=0)
            )
        except (errors.NotFound, errors.Conflict):
            return

    async def _write_status(
        self, pod: Manifest, phase: str, *, ready: bool = False, code: int = 0
    ) -> None:
        now = virtual_now().strftime("%Y-%m-%dT%H:%M:%SZ")
        has_ended = phase in ("Succeeded", "Failed")
        state: dict[str, Any] = {"running": {"startedAt": now}}
        if has_ended:
            state = {"terminated": {"exitCode": code, "finishedAt": now}}
        [container, *_] = [each["name"] for each in pod["spec"].get("containers", ())] or ["main"]
        status = {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "containerStatuses": [{"name": container, "restartCount": 0, "state": state}],
        }
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        change = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        await self._client.patch(PODS, name, change, namespace, subresource="status")


def _has_terminated(pod: Manifest) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
