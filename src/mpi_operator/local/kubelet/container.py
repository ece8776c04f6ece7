"""One container: started, waited for, and started again for as long as its policy wants."""

import asyncio
import errno
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from mpi_operator.kube.backoff import Backoff
from mpi_operator.kube.resources import Manifest
from mpi_operator.local.remote_exec.stand_ins import is_sshd
from mpi_operator.local.sandbox.protocol import Command, Process, Sandbox, SandboxError, StartError
from mpi_operator.local.times import now

from . import prober
from .config_sources import Missing
from .container_logs import ContainerLogs
from .container_spec import Recipe, recipe
from .context import PodContext
from .pod_status import Container, Ended, Running, State, Waiting, is_restarted
from .prober import Sick
from .probes import Target

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
        self.started = asyncio.Event()  # its startupProbe says so too
        self.recipe: Recipe | None = None
        self.known = _known(spec, is_init)
        self._context = context
        self._stopping = stopping
        self._changed = changed
        self._policy = str(context.pod["spec"].get("restartPolicy") or "Always")
        self._process: Process | None = None
        self._target: Target | None = None  # itself, to be asked things while it runs
        self._asked_to_end = asyncio.Event()
        self._why = ""  # it was ended
        self._ending: list[asyncio.Future[None]] = []

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
        """Ask it to end, if it runs; first its preStop hook is called."""
        hook = prober.hook_of(self.spec, "preStop")
        if self._target is not None and hook:
            self._ending.append(asyncio.ensure_future(self._take_leave(hook, self._target)))
        else:
            self._ask_to_end()

    async def _take_leave(self, hook: Manifest, target: Target) -> None:
        with suppress(Sick):  # it ends anyway
            await prober.call(hook, "preStop", target)
        self._ask_to_end()

    def _ask_to_end(self) -> None:
        self._asked_to_end.set()
        if self._process is not None:
            self._process.signal(signal.SIGTERM)
            self._process.signal(signal.SIGCONT)  # a paused one would not hear it

    def has_started(self) -> None:
        """Others may rely on it, unless it is still to say that it is ready."""
        self.started.set()
        is_ready = "readinessProbe" not in self.spec
        self._become(self.known.state, is_started=True, is_ready=is_ready)

    def is_ready(self, ready: bool) -> None:
        """It says whether others may rely on it."""
        self._become(self.known.state, is_started=True, is_ready=ready)

    def wait_for(self, message: str) -> None:
        """Say what is missing, if it has not started."""
        if isinstance(self.known.state, Waiting):
            reason = "ContainerCreating" if self.known.last is None else self.known.state.reason
            self._become(Waiting(reason, message))

    async def _back_off(self, seconds: float) -> None:
        message = f"back-off {seconds:.1f}s restarting failed container {self.name}"
        # Counted before it happens, and not after as a kubelet does: a Job that allows no more
        # restarts says so during the pause, and no program is started only to be stopped.
        self._become(Waiting("CrashLoopBackOff", message), restarts=self.known.restarts + 1)
        await pause(seconds, self._stopping)
        self._become(Waiting())

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
            await self._leave(beside)
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
        """Say that it runs, and look after it."""
        assert self.recipe is not None, "it runs, so it has been configured"
        self._why = ""
        self._asked_to_end.clear()
        address = self._context.pod["status"]["podIP"]
        execute = partial(self._execute, sandbox)
        self._target = Target(self.spec, address, execute, self.recipe.is_sshd)
        hook = prober.hook_of(self.spec, "postStart")
        if not hook:
            self._say_that_it_runs(since)
        return [asyncio.ensure_future(self._look_after(self._target, hook, since))]

    def _say_that_it_runs(self, since: datetime) -> None:
        self.running.set()
        self._become(Running(since))
        if "startupProbe" not in self.spec:
            self.has_started()

    async def _look_after(self, target: Target, hook: Manifest | None, since: datetime) -> None:
        try:
            if hook:
                await prober.call(hook, "postStart", target)
                self._say_that_it_runs(since)
            await prober.watch(self.spec, target, self)
        except* Sick as found:
            await self._give_up(found.exceptions[0])

    async def _give_up(self, sick: Exception) -> None:
        """End it as its pod would be ended; unless it is ending, for then nobody answers."""
        if self._target is None or self._stopping.is_set():
            return
        self._why = str(sick)
        grace = getattr(sick, "grace_seconds", None)
        self.terminate()
        await asyncio.sleep(self._context.grace_seconds if grace is None else grace)
        self._asked_to_end.set()
        if self._process is not None:
            self._process.signal(signal.SIGKILL, group=True)

    async def _leave(self, beside: "Sequence[asyncio.Future[Any]]") -> None:
        """It has ended, so nothing is asked of it any more."""
        self._target = None
        await _cancel([*beside, *self._ending])
        self._ending.clear()

    async def _wait_instead_of_sshd(self, sandbox: Sandbox) -> None:
        since = now()
        self.logs.begin()
        beside = self._begin(sandbox, since)
        lost = asyncio.ensure_future(sandbox.closed())
        asked = asyncio.ensure_future(self._asked_to_end.wait())
        try:
            if self._stopping.is_set():
                self.terminate()  # it was asked to end while it was being started
            await asyncio.wait([lost, asked], return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self._leave([*beside, lost, asked])
        if not (self._stopping.is_set() or self._why):
            raise SandboxError("its processes were killed from outside")
        code = -signal.SIGTERM if self._why else 0
        self._become(Ended(code, since, now(), message=self._why))

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
        if self._why:
            return self._why
        falls_back = self.spec.get("terminationMessagePolicy") == "FallbackToLogsOnError"
        return self.logs.message() if code != 0 and falls_back else ""

    async def _look_at_log(self) -> None:
        while True:
            self.logs.look()
            await asyncio.sleep(_LOG_LOOK_SECONDS)

    async def _execute(self, sandbox: Sandbox, argv: Sequence[str]) -> int:
        """Run a command beside it, for a probe or a hook."""
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

    def _become(
        self,
        state: State,
        *,
        is_started: bool = False,
        is_ready: bool = False,
        restarts: int | None = None,
    ) -> None:
        self.known = self.known.changed(
            state, is_started=is_started, is_ready=is_ready, restarts=restarts
        )
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
