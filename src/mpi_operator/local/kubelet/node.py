"""The node of this machine: runs the pods of a cluster as processes.

    watch pods ──► fits? ──► PodRunner ──► status ──► the cluster
    watch ConfigMaps, Secrets ──► the files of running pods

All pods are its own: there is no other node, so it is the scheduler too. What a pod is told to be
is read from the cluster, what it does is written there, and nothing else is kept: the cluster may
be any `Client`.
"""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from mpi_operator.kube import errors
from mpi_operator.kube.backoff import Backoff
from mpi_operator.kube.client import (
    INITIAL_EVENTS_END,
    Client,
    DeleteOptions,
    EventType,
    LogOptions,
    WatchOptions,
)
from mpi_operator.kube.resources import CONFIG_MAPS, PODS, SECRETS, Key, Manifest, Resource
from mpi_operator.local.remote_exec import stand_ins
from mpi_operator.local.remote_exec.agent_server import Request, Unreachable
from mpi_operator.local.sandbox.host import LocalHost
from mpi_operator.local.sandbox.protocol import Kind, Process, Sandboxes
from mpi_operator.local.times import now

from . import host_files
from .capacity import Ledger, Machine, Share, requested, this_machine
from .container_env import Tools, machine_environment
from .context import Place, PodContext
from .host_files import MountPoints
from .pod_dns import Hosts
from .pod_runner import PodRunner
from .pod_status import refused, unschedulable
from .pod_worker import Tenant

log = logging.getLogger(__name__)

ToolsOf: TypeAlias = Callable[[Manifest], Tools]

_BACKOFF = Backoff(base=0.1, cap=5.0)
_REACH_SECONDS = 30.0
_SELF = ("localhost", "127.0.0.1", "::1")


class Node:
    """Runs pods for as long as `run` runs; when it has ended there is no process left."""

    def __init__(
        self,
        client: Client,
        *,
        directory: Path,
        working_directory: Path,
        name: str = "",
        environment: Mapping[str, str] = os.environ,
        tools: ToolsOf = lambda pod: Tools(),
        kind: Kind | None = None,
        machine: Machine | None = None,
        oversubscribe: bool = False,
        cluster_domain: str = "",
        on_plain: Callable[[str], None] = lambda why: None,
    ) -> None:
        # `on_plain` hears why there are no namespaces, where somebody would expect them.
        self.name = name or socket.gethostname()
        self.sandboxes: Sandboxes | None = None
        self.why_plain = ""
        self._client = client
        self._directory = directory
        self._working_directory = working_directory
        self._environment = machine_environment(environment)
        self._tools = tools
        self._kind = kind
        self._on_plain = on_plain
        self._ledger = Ledger(machine or this_machine(environment), oversubscribe)
        self._hosts = Hosts(directory / "hosts", cluster_domain)
        home = Path(self._environment.get("HOME") or "/")
        self._mountpoints = MountPoints(directory, [home, working_directory])
        self._tenants: dict[str, Tenant] = {}  # by uid
        self._waiting: dict[str, Manifest] = {}  # pods that do not fit, by uid
        self._errands: set[asyncio.Future[None]] = set()
        self._started = asyncio.Event()
        self._count = 0

    @property
    def kind(self) -> Kind | None:
        """Which kind of sandbox pods run in, once that is known."""
        return self.sandboxes.kind if self.sandboxes else None

    async def started(self) -> None:
        """Wait until pods can be run."""
        await self._started.wait()

    async def run(self) -> None:
        """Run pods until cancelled."""
        host = await LocalHost.start(run=self._directory, kind=self._kind)
        self.sandboxes, self.why_plain = host, host.why_plain
        log.info(
            "pods run on this machine", extra={"sandbox": host.kind.value, "why": host.why_plain}
        )
        if host.why_plain and self._kind is None:
            self._on_plain(host.why_plain)
        self._started.set()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow(PODS, self._saw, self._lost))
                for resource in (CONFIG_MAPS, SECRETS):
                    group.create_task(self._follow(resource, self._changed_of(resource), _ignore))
        finally:
            await self._end(host)

    async def log(
        self, name: str, namespace: str, options: LogOptions = LogOptions()
    ) -> AsyncGenerator[bytes, None]:
        """The lines that a container printed; the same as `Client.log`."""
        key = Key(namespace, name)
        runner = self._runner(key)
        while runner is None and options.follow and self._is_waiting(key):
            await asyncio.sleep(0.05)
            runner = self._runner(key)
        logs = runner.logs(options.container) if runner else None
        if logs is None:
            return
        async with aclosing(logs.lines(options)) as lines:
            async for line in lines:
                yield line

    def _runner(self, key: Key) -> PodRunner | None:
        found = [tenant.runner for tenant in self._tenants.values() if tenant.runner.key == key]
        return found[-1] if found else None

    def _is_waiting(self, key: Key) -> bool:
        return any(_key(pod) == key for pod in self._waiting.values())

    async def _follow(
        self,
        resource: Resource,
        saw: Callable[[Manifest], None],
        lost: Callable[[Manifest], None],
    ) -> None:
        """Tell of every object, of every change of one, and of those that are gone."""
        known: dict[str, Manifest] = {}
        failures = 0
        while True:
            try:
                await self._watch(resource, known, saw, lost)
                failures = 0
            except errors.KubeError as error:
                failures += 1
                log.warning(
                    "a watch ended early", extra={"resource": str(resource), "error": str(error)}
                )
                await asyncio.sleep(_BACKOFF.delay(failures, 0))

    async def _watch(
        self,
        resource: Resource,
        known: dict[str, Manifest],
        saw: Callable[[Manifest], None],
        lost: Callable[[Manifest], None],
    ) -> None:
        seen: set[str] | None = set()
        async with aclosing(
            self._client.watch(resource, options=WatchOptions(initial_events=True))
        ) as events:
            async for event in events:
                manifest = event.object
                uid = manifest["metadata"].get("uid", "")
                if event.type is EventType.BOOKMARK:
                    marks = manifest["metadata"].get("annotations") or {}
                    if seen is not None and marks.get(INITIAL_EVENTS_END) == "true":
                        for gone in [known.pop(uid) for uid in set(known) - seen]:
                            lost(gone)
                        seen = None
                elif event.type is EventType.DELETED:
                    known.pop(uid, None)
                    lost(manifest)
                else:
                    if seen is not None:
                        seen.add(uid)
                    known[uid] = manifest
                    saw(manifest)

    def _saw(self, pod: Manifest) -> None:
        uid = pod["metadata"]["uid"]
        if tenant := self._tenants.get(uid):
            tenant.saw(pod)
        elif pod["metadata"].get("deletionTimestamp"):
            self._waiting.pop(uid, None)
            self.errand(self.delete(pod))
        elif (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            self._consider(pod)

    def _lost(self, pod: Manifest) -> None:
        uid = pod["metadata"]["uid"]
        self._waiting.pop(uid, None)
        if tenant := self._tenants.get(uid):
            tenant.evict(lambda: self._forget(uid))

    def _consider(self, pod: Manifest) -> None:
        """Run a pod or have it wait. One that makes no sense must not stop the others."""
        try:
            self._admit(pod)
        except Exception as error:
            log.exception("a pod cannot be run", extra={"pod": str(_key(pod))})
            self._ledger.give_back(_key(pod))
            self.errand(self.write(pod, refused(str(error))))

    def _admit(self, pod: Manifest) -> None:
        """Run a pod, if it may run and there is room."""
        uid = pod["metadata"]["uid"]
        if pod["spec"].get("schedulingGates"):
            return  # whoever has put them there takes them away, and we hear of it
        share = self._ledger.take(_key(pod), requested(pod))
        if isinstance(share, str):
            if uid not in self._waiting or _told(pod) != share:
                status = unschedulable(share, now(), pod.get("status") or {})
                self.errand(self.write(pod, status))
            self._waiting[uid] = pod
            return
        self._waiting.pop(uid, None)
        self._tenants[uid] = Tenant(self, pod, self._context(pod, share))

    def _context(self, pod: Manifest, share: Share) -> PodContext:
        self._count += 1
        # Short, for sockets are made in it and their addresses may not be long.
        directory = self._directory / "pods" / f"{self._count}-{pod['metadata']['name'][:24]}"
        directory.mkdir(parents=True)
        place = self._place()
        memory = (
            host_files.make_shared_memory(self._directory, directory.name)
            if place.is_plain
            else None
        )
        return PodContext(
            pod={**pod, "spec": {**pod["spec"], "nodeName": self.name}},
            place=place,
            directory=directory,
            lookup=partial(self._lookup, pod["metadata"]["namespace"]),
            tools=self._tools(pod),
            gpus=share.gpus,
            memory=memory,
        )

    def _place(self) -> Place:
        assert self.sandboxes is not None, "run() comes first"
        return Place(
            directory=self._directory,
            sandboxes=self.sandboxes,
            hosts=self._hosts,
            machine=self._ledger.machine,
            environment=self._environment,
            working_directory=self._working_directory,
            mountpoints=self._mountpoints,
            reach=self._reach,
        )

    async def _reach(self, caller: Key, request: Request) -> Process:
        """Run what an agent asks for in the pod that a host name means."""
        host = stand_ins.host_of_rank(request.rank.env) if request.rank else request.host
        key = caller if host in _SELF else self._hosts.find(caller.namespace, host)
        runner = self._runner(key) if key else None
        if runner is None:
            known = ", ".join(self._hosts.known(caller.namespace)) or "none"
            raise Unreachable(f"there is no host {host!r} here; known are: {known}")
        try:
            async with asyncio.timeout(_REACH_SECONDS):
                return await runner.execute(request)
        except TimeoutError:
            raise Unreachable(f"{host} did not start within {_REACH_SECONDS:.0f} seconds") from None

    def _changed_of(self, resource: Resource) -> Callable[[Manifest], None]:
        def changed(manifest: Manifest) -> None:
            for tenant in self._tenants.values():
                if tenant.runner.key.namespace == manifest["metadata"].get("namespace"):
                    tenant.refresh(resource, manifest["metadata"]["name"])

        return changed

    def left(self, tenant: Tenant) -> None:
        """A pod is over: what it had is free for others."""
        self._ledger.give_back(tenant.runner.key)
        for pod in list(self._waiting.values()):
            self._consider(pod)

    def errand(self, task: Coroutine[Any, Any, None]) -> None:
        """See to something in the background; what goes wrong with it is logged."""
        errand = asyncio.ensure_future(task)
        self._errands.add(errand)
        errand.add_done_callback(self._done)

    def _done(self, errand: "asyncio.Future[None]") -> None:
        self._errands.discard(errand)
        if not errand.cancelled() and (error := errand.exception()):
            log.error("the node could not do something", exc_info=error)

    def _forget(self, uid: str) -> None:
        self._tenants.pop(uid, None)

    async def _lookup(self, namespace: str, resource: Resource, name: str) -> Manifest | None:
        try:
            return await self._client.get(resource, name, namespace)
        except errors.NotFound:
            return None

    async def write(self, pod: Manifest, status: Manifest) -> None:
        """Store the status of a pod."""
        await self._patch(pod, {"status": status}, "status")

    async def bind(self, pod: Manifest) -> None:
        """Say that the pod is ours."""
        if not pod["spec"].get("nodeName"):
            await self._patch(pod, {"spec": {"nodeName": self.name}})

    async def _patch(self, pod: Manifest, change: Manifest, subresource: str = "") -> None:
        # With the uid, so that another pod of the same name is never meant.
        patch = {"metadata": {"uid": pod["metadata"]["uid"]}, **change}
        key = _key(pod)
        with suppress(errors.NotFound, errors.Conflict):
            await self._client.patch(PODS, key.name, patch, key.namespace, subresource=subresource)

    async def delete(self, pod: Manifest) -> None:
        """Take a pod that is over out of the cluster."""
        key = _key(pod)
        with suppress(errors.NotFound, errors.Conflict):
            await self._client.delete(
                PODS,
                key.name,
                key.namespace,
                DeleteOptions(uid=pod["metadata"]["uid"], grace_period_seconds=0),
            )

    async def _end(self, host: LocalHost) -> None:
        """End all pods at once: whoever cancels has waited long enough."""
        for tenant in list(self._tenants.values()):
            tenant.task.cancel()
        await host.close()
        for errand in self._errands:
            errand.cancel()
        tasks = [tenant.task for tenant in self._tenants.values()]
        await asyncio.gather(*tasks, *self._errands, return_exceptions=True)
        host_files.remove(self._directory)
        self._started.clear()


def _key(pod: Manifest) -> Key:
    return Key(pod["metadata"]["namespace"], pod["metadata"]["name"])


def _told(pod: Manifest) -> str:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next(
        (each.get("message", "") for each in conditions if each["type"] == "PodScheduled"), ""
    )


def _ignore(manifest: Manifest) -> None:
    """What is gone leaves its files to those who have them mounted, as in Kubernetes."""
