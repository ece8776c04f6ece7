"""The node of this machine: runs the pods of a cluster as processes.

    watch pods ──► fits? ──► PodWorker ──► status ──► the cluster
    watch ConfigMaps, Secrets ──► the files of running pods

There is no other node, so all pods are its own and it is the scheduler too. It reads specs from the
cluster, writes status there, and keeps nothing else: the cluster may be any `Client`.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from mpi_operator.kube.cache import Change
from mpi_operator.kube.client import Client
from mpi_operator.kube.informer import Informer
from mpi_operator.kube.objects import Object
from mpi_operator.kube.resources import CONFIG_MAPS, PODS, SECRETS, Manifest, Resource
from mpi_operator.local.sandbox.host import LocalHost
from mpi_operator.local.sandbox.protocol import Kind, Sandboxes
from mpi_operator.local.times import now

from . import host_files
from .allocator import Allocation, Allocator, Group, Ledger, NoOtherRuns
from .capacity import Machine, requested, this_machine
from .container_env import Tools, machine_environment
from .context import NodeContext, PodContext, Stdio
from .host_files import MountPoints
from .node_pods import NodePods, RemoteExec
from .pod_api import CachedPod, PodApi, key_of
from .pod_dns import PodDNS
from .pod_status import rejected, scheduling_message, unschedulable
from .pod_worker import PodWorker

log = logging.getLogger(__name__)

_OTHER_RUNS_SECONDS = 0.5


class Node:
    """Runs pods until `run` is cancelled; when it has ended no process is left."""

    def __init__(
        self,
        client: Client,
        *,
        directory: Path,
        working_directory: Path,
        pods: NodePods | None = None,
        name: str = "",
        environment: Mapping[str, str] = os.environ,
        tools: Tools | None = None,
        kind: Kind | None = None,
        machine: Machine | None = None,
        oversubscribe: bool = False,
        ledger: Ledger | None = None,
        group_of: Callable[[Manifest], Group | None] = lambda pod: None,
        cluster_domain: str = "",
        on_plain: Callable[[str], None] = lambda why: None,
        stdio: Stdio | None = None,
    ) -> None:
        """`group_of` tells which pods start together, `ledger` what other runs hold.

        `on_plain` gets the reason why namespaces cannot be used, unless a kind is given.
        """
        self.name = name or socket.gethostname()
        self.sandboxes: Sandboxes | None = None
        self.why_plain = ""
        self._client = client
        self._api = PodApi(client, self.name)
        self._pods = pods or NodePods()
        self._directory = directory
        self._working_directory = working_directory
        self._environment = machine_environment(environment)
        self._tools = tools or Tools()
        self._kind = kind
        self._on_plain = on_plain
        self._stdio = stdio or Stdio()
        self._allocator = Allocator(
            machine or this_machine(environment), oversubscribe, ledger or NoOtherRuns()
        )
        self._has_other_runs = ledger is not None
        self._group_of = group_of
        self._dns = PodDNS(directory / "hosts", cluster_domain)
        home = Path(self._environment.get("HOME") or "/")
        self._mountpoints = MountPoints(directory, [home, working_directory])
        self._background: set[asyncio.Future[None]] = set()
        self._started = asyncio.Event()
        self._count = 0

    @property
    def kind(self) -> Kind | None:
        """The kind of sandbox that pods run in; None until `started`."""
        return self.sandboxes.kind if self.sandboxes else None

    async def started(self) -> None:
        """Wait until the node can run pods."""
        await self._started.wait()

    async def run(self) -> None:
        """Run pods until cancelled."""
        host = await LocalHost.start(run=self._directory, kind=self._kind)
        self.sandboxes, self.why_plain = host, host.why_plain
        log.info("node started", extra={"sandbox": host.kind.value, "why": host.why_plain})
        if host.why_plain and self._kind is None:
            self._on_plain(host.why_plain)
        self._started.set()
        try:
            async with asyncio.TaskGroup() as group:
                context = self._node_context(host)
                for informer in self._informers(context):
                    group.create_task(informer.run())
                if self._has_other_runs:
                    group.create_task(self._retry_pending(context))
        finally:
            await self._end(host)

    def _informers(self, context: NodeContext) -> "list[Informer[Any]]":
        pods = Informer(self._client, PODS, CachedPod)
        pods.on_change(partial(self._pod_changed, context))
        informers: list[Informer[Any]] = [pods]
        for resource in (CONFIG_MAPS, SECRETS):
            informer = Informer(self._client, resource, Object)
            informer.on_change(partial(self._refresh_volumes, resource))
            informers.append(informer)
        return informers

    def _node_context(self, sandboxes: Sandboxes) -> NodeContext:
        return NodeContext(
            directory=self._directory,
            sandboxes=sandboxes,
            dns=self._dns,
            machine=self._allocator.machine,
            environment=self._environment,
            working_directory=self._working_directory,
            mountpoints=self._mountpoints,
            exec=RemoteExec(self._pods, self._dns).start,
            stdio=self._stdio,
        )

    def _pod_changed(self, context: NodeContext, change: Change[CachedPod]) -> None:
        old, new = change.old, change.new
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._pod_removed(old.metadata.uid)
        if new is None:
            return
        uid = new.metadata.uid
        if worker := self._pods.workers.get(uid):
            worker.update(new.metadata)
        elif new.metadata.deletion_timestamp:
            self._pods.pending.pop(uid, None)
            self._in_background(self._api.delete(new.manifest))
        elif (pod := new.manifest)["status"].get("phase") not in ("Succeeded", "Failed"):
            self._try_to_run(context, pod)

    def _pod_removed(self, uid: str) -> None:
        self._pods.pending.pop(uid, None)
        if worker := self._pods.workers.get(uid):
            worker.remove(lambda: self._forget(uid))

    def _forget(self, uid: str) -> None:
        self._pods.workers.pop(uid, None)

    def _refresh_volumes(self, resource: Resource, change: Change[Object]) -> None:
        """Update the volumes of running pods. Files of a deleted object stay, as on a cluster."""
        if change.new is None:
            return
        metadata = change.new.metadata
        for worker in self._pods.workers.values():
            if worker.runner.key.namespace == metadata.namespace:
                worker.refresh(resource, metadata.name)

    def _try_to_run(self, context: NodeContext, pod: Manifest) -> None:
        """Run a pod or let it wait. A malformed pod must not stop the others."""
        try:
            self._schedule(context, pod)
        except Exception as error:
            log.exception("pod rejected", extra={"pod": str(key_of(pod))})
            self._allocator.release(key_of(pod))
            self._in_background(self._api.write_status(pod, rejected(str(error))))

    def _schedule(self, context: NodeContext, pod: Manifest) -> None:
        """Run a pod if it may run and fits."""
        uid = pod["metadata"]["uid"]
        if pod["spec"].get("schedulingGates"):
            return  # removing them is a change, so this is called again
        allocation = self._allocator.allocate(key_of(pod), requested(pod), self._group_of(pod))
        if isinstance(allocation, str):
            if uid not in self._pods.pending or scheduling_message(pod) != allocation:
                status = unschedulable(allocation, now(), pod["status"])
                self._in_background(self._api.write_status(pod, status))
            self._pods.pending[uid] = pod
            return
        self._pods.pending.pop(uid, None)
        self._pods.workers[uid] = PodWorker(
            self._api,
            pod,
            self._pod_context(context, pod, allocation),
            self._in_background,
            partial(self._finished, context),
        )

    def _pod_context(
        self, context: NodeContext, pod: Manifest, allocation: Allocation
    ) -> PodContext:
        self._count += 1
        # Short, because sockets are made in it and their addresses may not be long.
        directory = self._directory / "pods" / f"{self._count}-{pod['metadata']['name'][:24]}"
        directory.mkdir(parents=True)
        shared_memory = None
        if context.is_plain:
            shared_memory = host_files.make_shared_memory(self._directory, directory.name)
        return PodContext(
            pod={**pod, "spec": {**pod["spec"], "nodeName": self.name}},
            node=context,
            directory=directory,
            lookup=partial(self._api.get, pod["metadata"]["namespace"]),
            tools=self._tools,
            gpus=allocation.gpus,
            shared_memory=shared_memory,
            link=host_files.pod_link(directory, shared_memory),
        )

    def _finished(self, context: NodeContext, worker: PodWorker) -> None:
        """Free the resources of a pod, and start pods that wait for them."""
        self._allocator.release(worker.runner.key)
        self._try_pending(context)

    def _try_pending(self, context: NodeContext) -> None:
        for pod in list(self._pods.pending.values()):
            self._try_to_run(context, pod)

    async def _retry_pending(self, context: NodeContext) -> None:
        """Start pods that wait for another run. Its end is not announced."""
        while True:
            await asyncio.sleep(_OTHER_RUNS_SECONDS)
            self._try_pending(context)

    def _in_background(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(coroutine)
        self._background.add(task)
        task.add_done_callback(self._background_done)

    def _background_done(self, task: "asyncio.Future[None]") -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("background task of the node failed", exc_info=error)

    async def _end(self, host: LocalHost) -> None:
        """Kill all pods at once: a grace period is the caller's business."""
        tasks = [worker.task for worker in self._pods.workers.values()]
        for task in tasks:
            task.cancel()
        await host.close()
        for each in self._background:
            each.cancel()
        await asyncio.gather(*tasks, *self._background, return_exceptions=True)
        self._mountpoints.close()
        host_files.remove(self._directory)
        self._started.clear()
