"""Runs one container: starts it, waits for it, and restarts it as its policy says."""

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
from .container_config import ContainerConfig, container_config
from .container_logs import ContainerLogs
from .context import PodContext
from .pod_status import ContainerStatus, Running, State, Terminated, Waiting, is_restarted
from .prober import Unhealthy
from .probes import Target

_MISSING_BACKOFF = Backoff(base=0.05, cap=1.0)
_CRASH_BACKOFF = Backoff(base=0.2, cap=10.0)  # a person is waiting, so shorter than 5m
_MAX_MESSAGE_BYTES = 4096
_LOG_POLL_SECONDS = 0.25
# Turns that everything else in the event loop has during a back-off, however starved the process
# is. After about 20, the Job controller has seen a restart and has deleted the pod if it must.
_TURNS = 40
_EXIT_CODES = {errno.ENOENT: 127, errno.EACCES: 126, errno.ENOEXEC: 126}

T = TypeVar("T")


class Stopped(Exception):
    """The pod is stopping, so nothing else is started."""


class ContainerRunner:
    """Runs one container of a pod."""

    def __init__(
        self,
        context: PodContext,
        spec: Manifest,
        *,
        is_init: bool,
        stopping: asyncio.Event,
        on_change: Callable[[], None],
    ) -> None:
        self.spec = spec
        self.logs = ContainerLogs(context.directory / "logs" / spec["name"])
        self.running = asyncio.Event()  # commands can be run in it
        self.started = asyncio.Event()  # and its startupProbe has succeeded
        self.config: ContainerConfig | None = None
        is_sidecar = is_init and spec.get("restartPolicy") == "Always"
        self.status = ContainerStatus(spec["name"], spec.get("image") or "", is_init, is_sidecar)
        self._context = context
        self._stopping = stopping
        self._on_change = on_change
        self._policy = str(context.pod["spec"].get("restartPolicy") or "Always")
        self._process: Process | None = None
        self._target: Target | None = None  # set while it runs
        self._terminated = asyncio.Event()
        self._failure = ""  # why the kubelet terminated it
        self._hooks: list[asyncio.Future[None]] = []

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    async def run(self, sandbox: Sandbox) -> None:
        """Run the container, and restart it for as long as its policy says."""
        crashes = 0
        while True:
            began = _time()
            await self._run_once(sandbox)
            if self._stopping.is_set() or not is_restarted(self.status, self._policy):
                return
            # The back-off starts over after a longer run.
            crashes = 1 if _time() - began > _CRASH_BACKOFF.cap else crashes + 1
            await self._back_off(_CRASH_BACKOFF.delay(crashes, 0))

    def terminate(self) -> None:
        """Terminate it if it runs, after its preStop hook."""
        hook = prober.hook_of(self.spec, "preStop")
        if self._target is not None and hook:
            self._hooks.append(asyncio.ensure_future(self._pre_stop(hook, self._target)))
        else:
            self._send_sigterm()

    async def _pre_stop(self, hook: Manifest, target: Target) -> None:
        with suppress(Unhealthy):  # it is terminated anyway
            await prober.call(hook, "PreStopHook", target)
        self._send_sigterm()

    def _send_sigterm(self) -> None:
        self._terminated.set()
        if self._process is not None:
            self._process.signal(signal.SIGTERM)
            self._process.signal(signal.SIGCONT)  # a stopped process would not see the other one

    def on_started(self) -> None:
        """Its startupProbe has succeeded, or it has none."""
        self.started.set()
        is_ready = "readinessProbe" not in self.spec
        self._set_state(self.status.state, is_started=True, is_ready=is_ready)

    def on_ready(self, ready: bool) -> None:
        """The result of its readinessProbe has changed."""
        self._set_state(self.status.state, is_started=True, is_ready=ready)

    def wait_for(self, message: str) -> None:
        """Report what is missing, if it has not started."""
        if isinstance(self.status.state, Waiting):
            reason = "ContainerCreating" if self.status.last is None else self.status.state.reason
            self._set_state(Waiting(reason, message))

    async def _back_off(self, seconds: float) -> None:
        message = f"back-off {seconds:.1f}s restarting failed container={self.name}"
        # Counted before the restart, where a kubelet counts after it: a Job whose limit is reached
        # ends the pod during the pause, and no program is started only to be stopped.
        restarts = self.status.restarts + 1
        self._set_state(Waiting("CrashLoopBackOff", message), restarts=restarts)
        await _pause_in_turns(seconds, self._stopping)
        self._set_state(Waiting())

    async def _run_once(self, sandbox: Sandbox) -> None:
        command = await self._configure(sandbox)
        if is_sshd(command.argv):
            await self._wait_instead_of_sshd(sandbox)
            return
        since = now()
        try:
            process = await self._start(sandbox, command)
        except StartError as error:
            self._set_state(_start_failed(self.name, command, error))
            return
        background = [
            asyncio.ensure_future(self._watch_log()),
            self._watch_health(sandbox, since),
        ]
        if self._stopping.is_set():
            self.terminate()  # the request came while it was being started
        try:
            code = await self._exit_code(process)
        finally:
            self._process = None
            await self._stop_watching(background)
        if not self._stopping.is_set():
            await sandbox.kill_container(self.name)
        self.logs.close_stderr()
        self._set_state(Terminated(code, since, now(), message=self._termination_message(code)))

    async def _configure(self, sandbox: Sandbox) -> Command:
        """Find out what to run, and mount the files of the container before its first start."""
        config = await retry_while_missing(
            lambda: container_config(self._context, self.spec), self._report_missing, self._stopping
        )
        if self.config is None:
            await sandbox.mount(self.name, config.mounts)
        self.config = config
        return config.command

    def _report_missing(self, missing: Missing) -> None:
        self._set_state(Waiting("CreateContainerConfigError", str(missing)))

    async def _start(self, sandbox: Sandbox, command: Command) -> Process:
        if self._stopping.is_set():
            raise Stopped
        if not command.argv:
            raise StartError(
                f"container {self.name} has no command. Images are not used on this machine,"
                " so the default command of the image is unknown: set the container's `command`"
            )
        self._context.termination_log(self.name).write_bytes(b"")
        output = self.logs.open()
        stdio = self._context.node.stdio
        is_read_by_rank = self.config is not None and self.config.gives_input
        given = None if is_read_by_rank else stdio.stdin(self._context.pod, self.name)
        stdin = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) if given is None else os.dup(given)
        errors = self.logs.open_stderr() if stdio.separates_stderr else os.dup(output)
        try:
            self._process = await sandbox.run(self.name, command, (stdin, output, errors))
        finally:
            for descriptor in (stdin, output, errors):
                os.close(descriptor)
        return self._process

    def _watch_health(self, sandbox: Sandbox, since: datetime) -> "asyncio.Future[None]":
        """Report that it runs, and start its hook and probes."""
        assert self.config is not None, "it runs, so it has been configured"
        self._failure = ""
        self._terminated.clear()
        address = self._context.pod["status"]["podIP"]
        execute = partial(self._execute, sandbox)
        self._target = Target(self.spec, address, execute, self.config.is_sshd)
        hook = prober.hook_of(self.spec, "postStart")
        if not hook:
            self._report_running(since)
        return asyncio.ensure_future(self._probe(self._target, hook, since))

    def _report_running(self, since: datetime) -> None:
        self.running.set()
        self._set_state(Running(since))
        if "startupProbe" not in self.spec:
            self.on_started()

    async def _probe(self, target: Target, hook: Manifest | None, since: datetime) -> None:
        try:
            if hook:
                await prober.call(hook, "PostStartHook", target)
                self._report_running(since)
            await prober.watch(self.spec, target, self)
        except* Unhealthy as errors:
            await self._terminate_unhealthy(errors.exceptions[0])

    async def _terminate_unhealthy(self, unhealthy: Exception) -> None:
        """Terminate it with its grace period, unless it is ending anyway."""
        if self._target is None or self._stopping.is_set():
            return
        self._failure = str(unhealthy)
        grace = getattr(unhealthy, "grace_seconds", None)
        self.terminate()
        await asyncio.sleep(self._context.grace_seconds if grace is None else grace)
        self._terminated.set()
        if self._process is not None:
            self._process.signal(signal.SIGKILL, group=True)

    async def _stop_watching(self, background: "Sequence[asyncio.Future[Any]]") -> None:
        self._target = None
        await _cancel([*background, *self._hooks])
        self._hooks.clear()

    async def _wait_instead_of_sshd(self, sandbox: Sandbox) -> None:
        since = now()
        self.logs.open_empty()
        health = self._watch_health(sandbox, since)
        lost = asyncio.ensure_future(sandbox.closed())
        terminated = asyncio.ensure_future(self._terminated.wait())
        try:
            if self._stopping.is_set():
                self.terminate()  # the request came while it was being started
            await asyncio.wait([lost, terminated], return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self._stop_watching([health, lost, terminated])
        if not (self._stopping.is_set() or self._failure):
            raise SandboxError("the processes of the pod were killed from outside")
        code = -signal.SIGTERM if self._failure else 0
        self._set_state(Terminated(code, since, now(), message=self._failure))

    async def _exit_code(self, process: Process) -> int:
        try:
            return await process.wait()
        except SandboxError:
            if self._stopping.is_set():
                return -signal.SIGKILL
            raise

    def _termination_message(self, code: int) -> str:
        with suppress(OSError), self._context.termination_log(self.name).open("rb") as file:
            if message := file.read(_MAX_MESSAGE_BYTES):
                return message.decode(errors="replace")
        if self._failure:
            return self._failure
        falls_back = self.spec.get("terminationMessagePolicy") == "FallbackToLogsOnError"
        return self.logs.last_lines() if code != 0 and falls_back else ""

    async def _watch_log(self) -> None:
        while True:
            self.logs.note_size()
            await asyncio.sleep(_LOG_POLL_SECONDS)

    async def _execute(self, sandbox: Sandbox, argv: Sequence[str]) -> int:
        """Run a command in the container, for a probe or a hook."""
        assert self.config is not None, "it runs, so it has been configured"
        command = Command(argv, self.config.command.env, self.config.command.directory)
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            process = await sandbox.run(self.name, command, (null, null, null))
        finally:
            os.close(null)
        try:
            return await process.wait()
        except asyncio.CancelledError:
            process.signal(signal.SIGKILL, group=True)
            raise

    def _set_state(
        self,
        state: State,
        *,
        is_started: bool = False,
        is_ready: bool = False,
        restarts: int | None = None,
    ) -> None:
        self.status = self.status.changed(
            state, is_started=is_started, is_ready=is_ready, restarts=restarts
        )
        self._on_change()


async def retry_while_missing(
    attempt: Callable[[], Awaitable[T]],
    report: Callable[[Missing], None],
    stopping: asyncio.Event,
) -> T:
    """Try until everything that is needed exists, and report what is missing meanwhile."""
    failures = 0
    while True:
        try:
            return await attempt()
        except Missing as missing:
            failures += 1
            report(missing)
        await pause(_MISSING_BACKOFF.delay(failures, 0), stopping)


async def pause(seconds: float, stopping: asyncio.Event) -> None:
    """Sleep; Stopped as soon as the pod is stopping."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stopping.wait()
            raise Stopped


async def _pause_in_turns(seconds: float, stopping: asyncio.Event) -> None:
    """Sleep in steps: a process that got no CPU would find a whole pause over in its first turn."""
    for _ in range(_TURNS):
        await pause(seconds / _TURNS, stopping)


def _start_failed(name: str, command: Command, error: StartError) -> Terminated:
    code, message = _EXIT_CODES.get(error.number, 128), str(error)
    if error.number == errno.ENOENT and command.argv:
        message = (
            f"container {name}: {command.argv[0]!r} not found ({error}). Images are not used on"
            " this machine: install the program here. A relative path starts in"
            f" {command.directory}"
        )
    return Terminated(code, None, now(), "StartError", message)


async def _cancel(tasks: "Sequence[asyncio.Future[Any]]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _time() -> float:
    return asyncio.get_running_loop().time()
