"""One container: started, waited for, and started again for as long as its policy wants."""

import asyncio
import errno
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TypeVar

from mpi_operator.kube.backoff import Backoff
from mpi_operator.kube.resources import Manifest
from mpi_operator.local.sandbox.protocol import Command, Process, Sandbox, SandboxError, StartError

from . import probes
from .configuration import Missing
from .context import PodContext
from .logs import ContainerLogs
from .recipe import Recipe, recipe
from .sshd import is_sshd
from .status import Container, Ended, Running, State, Waiting, is_restarted

_PATIENCE = Backoff(base=0.05, cap=1.0)  # for what is not there yet
_CRASHES = Backoff(base=0.2, cap=10.0)  # a laptop's patience is shorter than a cluster's
_MOST_WORDS = 4096
_LOG_LOOK_SECONDS = 0.25
_NOT_STARTED = {errno.ENOENT: 127, errno.EACCES: 126, errno.ENOEXEC: 126}


T = TypeVar("T")


class Stopped(Exception):
    """The pod is to stop, so nothing else is started."""


class ContainerRunner:
    """Runs one container of a pod."""

    def __init__(
        self,
        context: PodContext,
        spec: Manifest,
        *,
        is_init: bool,
        stopping: asyncio.Event,
        changed: Callable[[], None],
    ) -> None:
        self.spec = spec
        self.logs = ContainerLogs(context.directory / "logs" / spec["name"])
        self.running = asyncio.Event()  # others may come in
        self.recipe: Recipe | None = None
        self.known = _known(spec, is_init)
        self._context = context
        self._stopping = stopping
        self._changed = changed
        self._policy = str(context.pod["spec"].get("restartPolicy") or "Always")
        self._process: Process | None = None

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    async def keep(self, sandbox: Sandbox) -> None:
        """Run it again and again, for as long as its policy wants."""
        crashes = 0
        while True:
            began = _time()
            await self._run_once(sandbox)
            if self._stopping.is_set() or not is_restarted(self.known, self._policy):
                return
            # One that did well for a while starts over.
            crashes = 1 if _time() - began > _CRASHES.cap else crashes + 1
            await self._back_off(_CRASHES.delay(crashes, 0))

    def terminate(self) -> None:
        """Ask its process to end."""
        if self._process is not None:
            self._process.signal(signal.SIGTERM)
            self._process.signal(signal.SIGCONT)  # a paused one would not hear it

    def wait_for(self, message: str) -> None:
        """Say what is missing, if it has not started."""
        if isinstance(self.known.state, Waiting):
            reason = "ContainerCreating" if self.known.last is None else self.known.state.reason
            self._become(Waiting(reason, message))

    async def _back_off(self, seconds: float) -> None:
        restarts = self.known.restarts + 1
        message = f"back-off {seconds:.1f}s restarting failed container {self.name}"
        self._become(Waiting("CrashLoopBackOff", message))
        await pause(seconds, self._stopping)
        self._become(Waiting(), restarts=restarts)

    async def _run_once(self, sandbox: Sandbox) -> None:
        command = await self._configured(sandbox)
        if is_sshd(command.argv):
            await self._wait_instead_of_sshd(sandbox)
            return
        since = now()
        try:
            process = await self._start(sandbox, command)
        except StartError as error:
            self._become(_not_started(self.name, command, error))
            return
        beside = [asyncio.ensure_future(self._look_at_log()), *self._begin(sandbox, since)]
        try:
            code = await self._code_of(process)
        finally:
            self._process = None
            await _cancel(beside)
        if not self._stopping.is_set():
            await sandbox.clear(self.name)
        self._become(Ended(code, since, now(), message=self._last_words(code)))

    async def _configured(self, sandbox: Sandbox) -> Command:
        """Find out what to run, and have its files in place before its first start."""
        made = await patiently(
            lambda: recipe(self._context, self.spec), self._complain, self._stopping
        )
        if self.recipe is None:
            await sandbox.furnish(self.name, made.mounts)
        self.recipe = made
        return made.command

    def _complain(self, missing: Missing) -> None:
        self._become(Waiting("CreateContainerConfigError", str(missing)))

    async def _start(self, sandbox: Sandbox, command: Command) -> Process:
        if self._stopping.is_set():
            raise Stopped
        if not command.argv:
            raise StartError(
                f"container {self.name} has no command. Images are not used on this machine,"
                " so what its image would run is not known: say it in the container's `command`"
            )
        self._context.termination_log(self.name).write_bytes(b"")
        output = self.logs.open()
        nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._process = await sandbox.run(self.name, command, (nothing, output, output))
        finally:
            os.close(output)
            os.close(nothing)
        if self._stopping.is_set():
            self.terminate()  # it was asked to end while it was being started
        return self._process

    def _begin(self, sandbox: Sandbox, since: datetime) -> "list[asyncio.Future[None]]":
        """Say that it runs, and watch over its readiness."""
        probe = self.spec.get("readinessProbe")
        self.running.set()
        self._become(Running(since), is_ready=not probe)
        return [asyncio.ensure_future(self._watch_readiness(sandbox, probe))] if probe else []

    async def _wait_instead_of_sshd(self, sandbox: Sandbox) -> None:
        since = now()
        self.logs.begin()
        beside = self._begin(sandbox, since)
        lost = asyncio.ensure_future(sandbox.closed())
        stopped = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait([lost, stopped], return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _cancel([*beside, lost, stopped])
        if not self._stopping.is_set():
            raise SandboxError("its processes were killed from outside")
        self._become(Ended(0, since, now()))

    async def _code_of(self, process: Process) -> int:
        try:
            return await process.wait()
        except SandboxError:
            if self._stopping.is_set():
                return -signal.SIGKILL
            raise

    def _last_words(self, code: int) -> str:
        with suppress(OSError), self._context.termination_log(self.name).open("rb") as file:
            if words := file.read(_MOST_WORDS):
                return words.decode(errors="replace")
        falls_back = self.spec.get("terminationMessagePolicy") == "FallbackToLogsOnError"
        return self.logs.message() if code != 0 and falls_back else ""

    async def _look_at_log(self) -> None:
        while True:
            self.logs.look()
            await asyncio.sleep(_LOG_LOOK_SECONDS)

    async def _watch_readiness(self, sandbox: Sandbox, probe: Manifest) -> None:
        address = self._context.pod["status"]["podIP"]
        answers = probes.answers(
            probe, self.spec, address, lambda argv: self._execute(sandbox, argv)
        )
        async for is_ready in answers:
            self._become(self.known.state, is_ready=is_ready)

    async def _execute(self, sandbox: Sandbox, argv: Sequence[str]) -> int:
        """Run a command beside it, for a probe."""
        assert self.recipe is not None, "it runs, so it has been configured"
        command = Command(argv, self.recipe.command.env, self.recipe.command.directory)
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            process = await sandbox.run(self.name, command, (nothing, nothing, nothing))
        finally:
            os.close(nothing)
        try:
            return await process.wait()
        except asyncio.CancelledError:
            process.signal(signal.SIGKILL, group=True)
            raise

    def _become(self, state: State, *, is_ready: bool = False, restarts: int | None = None) -> None:
        self.known = self.known.changed(state, is_ready=is_ready, restarts=restarts)
        self._changed()


async def patiently(
    attempt: Callable[[], Awaitable[T]],
    complain: Callable[[Missing], None],
    stopping: asyncio.Event,
) -> T:
    """Try until what is needed is there, and say what is missing meanwhile."""
    failures = 0
    while True:
        try:
            return await attempt()
        except Missing as missing:
            failures += 1
            complain(missing)
        await pause(_PATIENCE.delay(failures, 0), stopping)


async def pause(seconds: float, stopping: asyncio.Event) -> None:
    """Wait, unless the pod is to stop."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stopping.wait()
            raise Stopped


def now() -> datetime:
    return datetime.now(UTC)


def _not_started(name: str, command: Command, error: StartError) -> Ended:
    code, message = _NOT_STARTED.get(error.number, 128), str(error)
    if error.number == errno.ENOENT and command.argv:
        message = (
            f"container {name}: {command.argv[0]!r} was not found ({error}). Images are not used"
            " on this machine: programs are looked for on the machine itself, relative ones in"
            f" {command.directory}"
        )
    return Ended(code, None, now(), "StartError", message)


def _known(spec: Manifest, is_init: bool) -> Container:
    is_sidecar = is_init and spec.get("restartPolicy") == "Always"
    return Container(spec["name"], spec.get("image") or "", is_init, is_sidecar)


async def _cancel(tasks: "Sequence[asyncio.Future[Any]]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _time() -> float:
    return asyncio.get_running_loop().time()
