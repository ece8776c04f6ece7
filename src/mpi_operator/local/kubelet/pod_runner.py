"""One pod, from its first directory to its last process. Knows nothing of a cluster.

    prepare ──► init containers, one after the other ──► containers, together ──► over

`stop` asks its processes to end, waits for as long as they are given, and kills the rest. However
`run` ends, when it has returned there is no process left.
"""

import asyncio
import logging
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from mpi_operator.kube.resources import Key, Manifest, Resource
from mpi_operator.local.remote_exec import agent_server, stand_ins
from mpi_operator.local.sandbox.protocol import (
    Command,
    Frame,
    Process,
    Sandbox,
    SandboxError,
    StartError,
)
from mpi_operator.local.times import now

from . import volumes
from .config_sources import Missing
from .container import ContainerRunner, Stopped, patiently
from .container_env import HOME
from .container_logs import ContainerLogs
from .context import PodContext
from .downward_api import UnknownField
from .pod_status import Facts, Verdict, status_of

log = logging.getLogger(__name__)

# Hears the whole status of the pod, each time that it changes.
Report: TypeAlias = Callable[[Manifest], None]


class PodRunner:
    """Runs one pod, once."""

    def __init__(self, context: PodContext, report: Report) -> None:
        address = context.place.hosts.add(context.pod)
        # What a container may be told about its pod includes what has just been decided.
        context.pod["status"] = {"podIP": address, "hostIP": context.place.host_ip}
        spec = context.pod["spec"]
        policy = str(spec.get("restartPolicy") or "Always")
        self._context = context
        self._report = report
        self._facts = Facts(policy, now(), address, context.place.host_ip)
        self._stopping = asyncio.Event()
        self._first = [
            self._runner(each, is_init=True) for each in spec.get("initContainers") or ()
        ]
        self._main = [self._runner(each, is_init=False) for each in spec["containers"]]
        self._status: Manifest = {}
        self._verdict: Verdict | None = None
        self._sandbox: Sandbox | None = None
        self._door: agent_server.Door | None = None
        self._beside: list[asyncio.Future[Any]] = []  # sidecars, and the killer if need be

    @property
    def key(self) -> Key:
        return self._context.key

    def logs(self, container: str = "") -> ContainerLogs | None:
        """What a container printed; of the first one if none is named."""
        known = {each.name: each.logs for each in (*self._first, *self._main)}
        return known.get(container or self._main[0].name)

    async def run(self) -> None:
        """Run the pod to its end."""
        life = asyncio.ensure_future(self._live())
        try:
            await asyncio.wait(
                [life], timeout=self._context.pod["spec"].get("activeDeadlineSeconds")
            )
            if not life.done():
                words = "Pod was active on the node longer than the specified deadline"
                self._verdict = Verdict("Failed", "DeadlineExceeded", words)
                self.stop(self._context.grace_seconds)
            await life
        finally:
            await self._end(life)

    def stop(self, grace_seconds: float) -> None:
        """Have the pod end, within this time."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        for container in (*self._first, *self._main):
            container.terminate()
        self._beside.append(asyncio.ensure_future(self._kill_after(grace_seconds)))

    def kill(self) -> None:
        """Have it end now."""
        self._stopping.set()
        self._beside.append(asyncio.ensure_future(self._kill_after(0)))

    async def refresh(self, changed: Resource, name: str) -> None:
        """Bring files up to date with an object that has changed."""
        for volume in self._context.pod["spec"].get("volumes") or ():
            is_mounted = volume["name"] in self._context.volumes
            if is_mounted and (changed, name) in volumes.depends_on(volume):
                with suppress(Missing):
                    await self._prepare_volume(volume)

    async def execute(self, request: agent_server.Request) -> Process:
        """Run what an agent asks for beside the first container, once that runs."""
        container = self._main[0]
        await container.running.wait()
        if container.recipe is None or self._sandbox is None or self._stopping.is_set():
            raise agent_server.Unreachable(f"{self.key.name} is not running")
        own = container.recipe.command
        if request.rank:
            env = {**request.rank.env, **container.recipe.identity, "TMPDIR": own.env["TMPDIR"]}
            command = Command(request.rank.argv, env, request.rank.directory)
        else:
            shell = ["/bin/sh", "-c", request.shell] if request.shell else ["/bin/sh"]
            command = Command(shell, own.env, own.directory)
        return await self._sandbox.run(container.name, command, request.stdio)

    def _runner(self, spec: Manifest, *, is_init: bool) -> ContainerRunner:
        return ContainerRunner(
            self._context, spec, is_init=is_init, stopping=self._stopping, changed=self._say
        )

    async def _live(self) -> None:
        try:
            sandbox = await self._prepare()
            if await self._has_initialized(sandbox):
                async with asyncio.TaskGroup() as group:
                    for container in self._main:
                        group.create_task(container.keep(sandbox))
        except* Stopped:
            pass
        except* (volumes.VolumeError, UnknownField, StartError, ValueError) as found:
            self._fail("ContainerCannotRun", found)
        except* SandboxError as found:
            if not self._stopping.is_set():
                self._fail("SandboxLost", found)
        except* Exception as found:
            log.exception("running a pod failed", extra={"pod": str(self.key)})
            self._fail("InternalError", found)

    def _fail(self, reason: str, found: "BaseExceptionGroup[Exception]") -> None:
        self._verdict = Verdict("Failed", reason, str(found.exceptions[0]))

    async def _prepare(self) -> Sandbox:
        for directory in (self._context.home / "tmp", self._context.directory / "shm"):
            directory.mkdir(parents=True, exist_ok=True)
        self._say()
        for volume in self._context.pod["spec"].get("volumes") or ():
            attempt = partial(self._prepare_volume, volume)
            await patiently(attempt, self._complain, self._stopping)
        self._write_programs()
        self._door = agent_server.Door(
            self._context.home, lambda request: self._context.place.reach(self.key, request)
        )
        self._sandbox = await self._context.place.sandboxes.open(self._frame())
        return self._sandbox

    async def _prepare_volume(self, volume: Manifest) -> None:
        context = self._context
        made = await volumes.prepare(volume, context.directory / "volumes", context.sources)
        context.volumes[volume["name"]] = made

    def _complain(self, missing: Missing) -> None:
        for container in (*self._first, *self._main):
            container.wait_for(str(missing))

    def _frame(self) -> Frame:
        ready = self._context.volumes.values()
        memory = {volume.path: volume.memory for volume in ready if volume.memory}
        shared = {self._context.directory / "shm": "mode=1777"}
        return Frame(self._context.hostname, self._context.directory, memory | shared)

    def _write_programs(self) -> None:
        is_plain = self._context.place.is_plain
        home = str(self._context.home) if is_plain else HOME
        programs = stand_ins.programs(home, self._context.hostname)
        if not is_plain:
            del programs["hostname"]  # the machine's own says the right thing
        write_programs(self._context.home / "bin", programs)
        if is_plain:
            programs = stand_ins.mpirun_programs(home)
            write_programs(self._context.home / "mpi", programs)
        for name, target in self._context.tools.links.items():
            (self._context.home / "bin" / name).symlink_to(target)

    async def _has_initialized(self, sandbox: Sandbox) -> bool:
        """Run the init containers; whether the others may start."""
        for container in self._first:
            if container.known.is_sidecar:
                await self._start_sidecar(container, sandbox)
                continue
            await container.keep(sandbox)
            if not container.known.has_succeeded:
                return False
        return True

    async def _start_sidecar(self, container: ContainerRunner, sandbox: Sandbox) -> None:
        """Wait until it has started; it goes on beside the others."""
        life = asyncio.ensure_future(container.keep(sandbox))
        started = asyncio.ensure_future(container.started.wait())
        self._beside += [life, started]
        await asyncio.wait([life, started], return_when=asyncio.FIRST_COMPLETED)
        if life.done():
            await life  # raises what kept it from running

    async def _kill_after(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds, 0))
        if self._sandbox is not None:
            await self._sandbox.close()

    async def _end(self, life: "asyncio.Future[None]") -> None:
        self._stopping.set()
        for task in (life, *self._beside):
            task.cancel()
        if self._door is not None:
            await self._door.close()
        if self._sandbox is not None:
            await self._sandbox.close()
        await asyncio.gather(life, *self._beside, return_exceptions=True)
        if self._context.memory is not None:
            shutil.rmtree(self._context.memory, ignore_errors=True)
        for container in (*self._first, *self._main):
            container.logs.end()
        self._context.place.hosts.remove(self.key)
        self._say()

    def _say(self) -> None:
        known = [each.known for each in (*self._first, *self._main)]
        status = status_of(known, self._facts, now(), self._status, self._verdict)
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
