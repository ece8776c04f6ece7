"""The pods of the node: found by name, for their logs and for commands from other pods."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from mpi_operator.kube.client import LogOptions
from mpi_operator.kube.resources import Key, Manifest
from mpi_operator.local.remote_exec import stand_ins
from mpi_operator.local.remote_exec.agent_server import Request, Unreachable
from mpi_operator.local.sandbox.protocol import Process

from .error_pipe import Chunk
from .pod_api import key_of
from .pod_dns import PodDNS
from .pod_runner import PodRunner
from .pod_worker import PodWorker

_EXEC_SECONDS = 30.0
_POLL_SECONDS = 0.05
_SELF = ("localhost", "127.0.0.1", "::1")


class NodePods(msgspec.Struct, frozen=True):
    """The pods that have a worker, and those that wait for room on the machine; both by uid."""

    workers: dict[str, PodWorker] = msgspec.field(default_factory=dict)
    pending: dict[str, Manifest] = msgspec.field(default_factory=dict)

    def find(self, key: Key) -> PodRunner | None:
        """The pod of that name; the latest if an older one is still terminating."""
        found = [each.runner for each in self.workers.values() if each.runner.key == key]
        return found[-1] if found else None

    async def log(
        self, name: str, namespace: str, options: LogOptions = LogOptions()
    ) -> AsyncGenerator[bytes, None]:
        """The lines that a container printed; the same as `Client.log`."""
        key = Key(namespace, name)
        runner = self.find(key)
        while runner is None and options.follow and self._is_pending(key):
            await asyncio.sleep(_POLL_SECONDS)
            runner = self.find(key)
        logs = runner.logs(options.container) if runner else None
        if logs is None:
            return
        async with aclosing(logs.lines(options)) as lines:
            async for line in lines:
                yield line

    async def output(
        self, name: str, namespace: str, container: str
    ) -> AsyncGenerator[Chunk, None]:
        """What a container prints from its last start on, as soon as it is printed."""
        runner = self.find(Key(namespace, name))
        logs = runner.logs(container) if runner else None
        if logs is not None:
            async with aclosing(logs.output()) as chunks:
                async for chunk in chunks:
                    yield chunk

    def _is_pending(self, key: Key) -> bool:
        return any(key_of(pod) == key for pod in self.pending.values())


class RemoteExec(msgspec.Struct, frozen=True):
    """Runs commands of one pod in another: what ssh does on a cluster."""

    pods: NodePods
    dns: PodDNS

    async def start(self, caller: Key, request: Request) -> Process:
        """Start what an agent asks for in the pod that has the host name."""
        host = stand_ins.host_of_rank(request.rank.env) if request.rank else request.host
        key = caller if host in _SELF else self.dns.find(caller.namespace, host)
        runner = self.pods.find(key) if key else None
        if runner is None:
            known = ", ".join(self.dns.known(caller.namespace)) or "none"
            raise Unreachable(f"Could not resolve hostname {host}. Known hosts: {known}")
        try:
            async with asyncio.timeout(_EXEC_SECONDS):
                return await runner.execute(request, self.pods.find(caller))
        except TimeoutError:
            raise Unreachable(f"{host} did not start within {_EXEC_SECONDS:.0f}s") from None
