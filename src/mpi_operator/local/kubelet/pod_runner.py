"""Runs one pod, from its first directory to its last process. Knows nothing of a cluster.

    prepare ──► init containers, one after the other ──► containers, together ──► ended

`stop` terminates its processes, waits for the grace period, and kills the rest. However `run` ends,
no process is left when it has returned.
"""

import asyncio
import logging
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from mpi_operator.kube.resources import Key, Manifest, Resource
from mpi_operator.local.default_container import default_container
from mpi_operator.local.remote_exec import stand_ins
from mpi_operator.local.remote_exec.agent_server import AgentServer, Request, Stdio, Unreachable
from mpi_operator.local.sandbox.path_translation import Translation
from mpi_operator.local.sandbox.process_tree import CONTAINER_VARIABLE, RUN_VARIABLE
from mpi_operator.local.sandbox.protocol import (
    Command,
    Mount,
    Process,
    Sandbox,
    SandboxConfig,
    SandboxError,
    StartError,
)
from mpi_operator.local.times import now

from . import gpus, volumes
from .config_sources import Missing
from .container import ContainerRunner, Stopped, retry_while_missing
from .container_config import POD_VARIABLE
from .container_env import HOME
from .container_logs import ContainerLogs
from .context import PodContext
from .downward_api import UnknownField
from .pod_status import Failure, PodFacts, status_of

log = logging.getLogger(__name__)

# What a pod is and has. A rank keeps it, whatever `mpirun -x` passes on: horovodrun passes all.
_OWN_VARIABLES = (*gpus.VARIABLES, RUN_VARIABLE, CONTAINER_VARIABLE, POD_VARIABLE)

# Called with the whole status of the pod each time that it changes.
Report: TypeAlias = Callable[[Manifest], None]


class PodRunner:
    """Runs one pod, once."""

    def __init__(self, context: PodContext, report: Report) -> None:
        address = context.node.dns.add(context.pod)
        # Set before any container is configured: the downward API may expose it.
        context.pod["status"] = {"podIP": address, "hostIP": context.node.host_ip}
        spec = context.pod["spec"]
        policy = str(spec.get("restartPolicy") or "Always")
        self._context = context
        self._report = report
        self._facts = PodFacts(policy, now(), address, context.node.host_ip)
        self._stopping = asyncio.Event()
        self._init = [self._runner(each, is_init=True) for each in spec.get("initContainers") or ()]
        self._main = [self._runner(each, is_init=False) for each in spec["containers"]]
        default = default_container(context.pod)
        self._default = next(each for each in self._main if each.name == default)
        self._status: Manifest = {}
        self._failure: Failure | None = None
        self._sandbox: Sandbox | None = None
        self._agents: AgentServer | None = None
        self._background: list[asyncio.Future[Any]] = []  # sidecars, and the kill after `stop`

    @property
    def key(self) -> Key:
        return self._context.key

    @property
    def _all(self) -> list[ContainerRunner]:
        return [*self._init, *self._main]

    def logs(self, container: str = "") -> ContainerLogs | None:
        """The logs of a container; by default of the main one."""
        known = {each.name: each.logs for each in self._all}
        return known.get(container or self._default.name)

    async def run(self) -> None:
        """Run the pod to its end."""
        running = asyncio.ensure_future(self._run())
        try:
            deadline = self._context.pod["spec"].get("activeDeadlineSeconds")
            await asyncio.wait([running], timeout=deadline)
            if not running.done():
                message = "Pod was active on the node longer than the specified deadline"
                self._failure = Failure("DeadlineExceeded", message)
                self.stop(self._context.grace_seconds)
            await running
        finally:
            await self._end(running)

    def stop(self, grace_seconds: float) -> None:
        """Terminate the pod; kill it after this time."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        for container in self._all:
            container.terminate()
        self._background.append(asyncio.ensure_future(self._kill_after(grace_seconds)))

    def kill(self) -> None:
        """Kill the pod now."""
        self._stopping.set()
        self._background.append(asyncio.ensure_future(self._kill_after(0)))

    async def refresh(self, changed: Resource, name: str) -> None:
        """Update the volumes that are made from an object."""
        for volume in self._context.pod["spec"].get("volumes") or ():
            is_mounted = volume["name"] in self._context.volumes
            if is_mounted and (changed, name) in volumes.depends_on(volume):
                with suppress(Missing):
                    await self._prepare_volume(volume)

    @property
    def in_container(self) -> Translation:
        """From the places of its own files on this machine to the paths of its main container.

        Also from their real places, if a link leads there: the kernel names working directories so.
        """
        config, root = self._default.config, self._context.root
        roots = (root, self._context.directory.resolve())
        return Translation(
            [
                Mount(Path(mount.target), str(place))
                for mount in (config.mounts if config else ())
                if mount.source.is_relative_to(root)
                for place in (mount.source, mount.source.resolve())
                if any(map(place.is_relative_to, roots))
            ]
        )

    @property
    def gives_input(self) -> bool:
        """Whether its ranks read the input of the job, and not that of an mpirun of a script."""
        config = self._default.config
        return config is not None and config.gives_input

    async def execute(self, request: Request, caller: "PodRunner | None" = None) -> Process:
        """Run what an agent of the caller asks for in the main container, once that runs."""
        container = self._default
        await container.running.wait()
        if container.config is None or self._sandbox is None or self._stopping.is_set():
            raise Unreachable(f"{self.key.name} is not running")
        own = container.config.command
        if request.rank:
            names = caller.in_container if caller else Translation([])
            env = stand_ins.rank_environment(request.rank.env, own.env, names)
            env |= {name: own.env[name] for name in _OWN_VARIABLES if name in own.env}
            argv = [names(word) for word in request.rank.argv]
            command = Command(argv, env, names(request.rank.directory))
            stdio = request.stdio
            if caller and caller.gives_input and stand_ins.is_rank_0(request.rank.env):
                stdio = self._with_input(stdio)
        else:
            shell = ["/bin/sh", "-c", request.shell] if request.shell else ["/bin/sh"]
            command = Command(shell, own.env, own.directory)
            stdio = request.stdio
        env = {**command.env, stand_ins.STARTED_ON: self._context.hostname}
        command = msgspec.structs.replace(command, env=env)
        return await self._sandbox.run(container.name, command, stdio)

    def _with_input(self, stdio: Stdio) -> Stdio:
        """The descriptors of rank 0, which reads the input of its job."""
        given = self._context.node.stdio.rank_0
        _, out, err = stdio
        return stdio if given is None else (given, out, err)

    def _runner(self, spec: Manifest, *, is_init: bool) -> ContainerRunner:
        return ContainerRunner(
            self._context,
            spec,
            is_init=is_init,
            stopping=self._stopping,
            on_change=self._report_status,
        )

    async def _run(self) -> None:
        try:
            sandbox = await self._prepare()
            if await self._has_initialized(sandbox):
                async with asyncio.TaskGroup() as group:
                    for container in self._main:
                        group.create_task(container.run(sandbox))
        except* Stopped:
            pass
        except* (volumes.VolumeError, UnknownField, StartError, ValueError) as errors:
            self._fail("ContainerCannotRun", errors)
        except* SandboxError as errors:
            if not self._stopping.is_set():
                self._fail("SandboxLost", errors)
        except* Exception as errors:
            log.exception("running a pod failed", extra={"pod": str(self.key)})
            self._fail("InternalError", errors)

    def _fail(self, reason: str, errors: "BaseExceptionGroup[Exception]") -> None:
        self._failure = Failure(reason, str(errors.exceptions[0]))

    async def _prepare(self) -> Sandbox:
        context = self._context
        for directory in (context.home / "tmp", context.directory / "shm"):
            directory.mkdir(parents=True, exist_ok=True)
        self._report_status()
        for volume in context.pod["spec"].get("volumes") or ():
            prepare = partial(self._prepare_volume, volume)
            await retry_while_missing(prepare, self._report_missing, self._stopping)
        self._write_programs()
        start = partial(context.node.exec, self.key)
        self._agents = AgentServer(context.home, start, context.node.stdio.rank_0)
        self._sandbox = await context.node.sandboxes.open(self._sandbox_config())
        return self._sandbox

    async def _prepare_volume(self, volume: Manifest) -> None:
        context = self._context
        directory = context.root / "volumes"
        context.volumes[volume["name"]] = await volumes.prepare(volume, directory, context.sources)

    def _report_missing(self, missing: Missing) -> None:
        for container in self._all:
            container.wait_for(str(missing))

    def _sandbox_config(self) -> SandboxConfig:
        ready = self._context.volumes.values()
        tmpfs = {volume.path: volume.tmpfs for volume in ready if volume.tmpfs}
        tmpfs[self._context.directory / "shm"] = "mode=1777"
        return SandboxConfig(self._context.hostname, self._context.directory, tmpfs)

    def _write_programs(self) -> None:
        context = self._context
        home = str(context.home) if context.node.is_plain else HOME
        programs = stand_ins.programs(home, context.hostname)
        if context.node.is_plain:
            write_programs(context.home / "mpi", stand_ins.mpirun_programs(home, context.hostname))
        else:
            del programs["hostname"]  # in namespaces the machine's own prints the right name
        write_programs(context.home / "bin", programs)
        for name, target in context.tools.links.items():
            (context.home / "bin" / name).symlink_to(target)

    async def _has_initialized(self, sandbox: Sandbox) -> bool:
        """Run the init containers; whether all of them have succeeded."""
        for container in self._init:
            if container.status.is_sidecar:
                await self._start_sidecar(container, sandbox)
                continue
            await container.run(sandbox)
            if not container.status.has_succeeded:
                return False
        return True

    async def _start_sidecar(self, container: ContainerRunner, sandbox: Sandbox) -> None:
        """Wait until a sidecar has started; it keeps running beside the others."""
        running = asyncio.ensure_future(container.run(sandbox))
        started = asyncio.ensure_future(container.started.wait())
        self._background += [running, started]
        await asyncio.wait([running, started], return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            await running  # raises what kept it from running

    async def _kill_after(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds, 0))
        if self._sandbox is not None:
            await self._sandbox.close()

    async def _end(self, running: "asyncio.Future[None]") -> None:
        self._stopping.set()
        for task in (running, *self._background):
            task.cancel()
        if self._agents is not None:
            await self._agents.close()
        if self._sandbox is not None:
            await self._sandbox.close()
        await asyncio.gather(running, *self._background, return_exceptions=True)
        if self._context.shared_memory is not None:
            shutil.rmtree(self._context.shared_memory, ignore_errors=True)
        for container in self._all:
            container.logs.close_stderr()
            container.logs.end()
        self._context.node.dns.remove(self.key)
        self._report_status()

    def _report_status(self) -> None:
        containers = [each.status for each in self._all]
        status = status_of(containers, self._facts, now(), self._status, self._failure)
        if status != self._status:
            self._status = status
            self._report(status)


def write_programs(directory: Path, contents: Mapping[str, str]) -> None:
    """Write small programs into a directory. A program with several names is written once."""
    directory.mkdir(parents=True, exist_ok=True)
    written: dict[str, Path] = {}
    for name, text in contents.items():
        file = directory / name
        if text in written:
            file.hardlink_to(written[text])
        else:
            volumes.write_file(file, text.encode(), 0o755)
            written[text] = file
