"""The init process of a pod: starts its processes, reaps them, and kills them at the end.

One per pod, forked by the fork server; it never execs another program. In namespaces it is PID 1,
so the kernel kills everything in the sandbox when it ends. Without namespaces it adopts the orphans
of its descendants, and so finds all of them when it is time to kill them.

It ends when its node closes the socket, or when the fork server is gone: nothing outlives both.
"""

from __future__ import annotations

import os
import select

from . import messages, process_tree, rootfs, syscalls
from .process_tree import CONTAINER_VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable
    from signal import SIG_DFL, SIGCHLD, SIGKILL, set_wakeup_fd, signal
    from typing import NoReturn

    from .messages import Message
else:
    from _signal import SIG_DFL, SIGCHLD, SIGKILL, set_wakeup_fd, signal

# Python ignores two of them and the fork server more; a program expects the defaults.
_RESET_SIGNALS = (1, 2, 3, 10, 12, 13, 15, 17, 25)


class PodInit:
    """The init process of a sandbox without namespaces."""

    def __init__(self, control: socket, lifeline: int) -> None:
        self._control = control
        self._lifeline = lifeline
        self._running: dict[int, int] = {}  # pid → the node's id for it
        self._wakeup = wake_on_child()

    def serve(self) -> None:
        """Handle requests of the node until it closes the socket."""
        serve(self._control, self._wakeup, self._reap, self._handle, self._lifeline)

    def send(self, **facts: object) -> None:
        """Send a message to the node, if it is still there."""
        try:  # noqa: SIM105 — contextlib costs 3 ms
            messages.send(self._control, facts)
        except ConnectionError:
            pass  # the next read raises EOFError

    def _handle(self, message: Message, descriptors: list[int]) -> None:
        operation = message["op"]
        try:
            if operation == "mount":
                self.mount(message["container"], message["scratch"], message["mounts"])
                self.send(event="done", id=message["id"])
            elif operation == "run":
                pid = self._run(message, descriptors)
                self._running[pid] = message["id"]
                self.send(event="started", id=message["id"], pid=pid)
            elif operation == "signal":
                self._signal(message["id"], message["number"], message["group"])
            elif operation == "kill_container":
                self._kill_container(message["container"])
                self.send(event="done", id=message["id"])
        except OSError as error:
            self.send(
                event="failed", id=message["id"], errno=error.errno or 0, error=describe(error)
            )
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def mount(self, container: str, scratch: str, mounts: list[tuple[str, str, bool]]) -> None:
        """Build the file system of a container. Without namespaces there is nothing to do."""

    def enter(self, container: str) -> None:
        """In a new process: enter the file system of a container."""

    def members(self, container: str) -> list[int]:
        """The processes of a container."""
        return [
            pid
            for pid in process_tree.descendants(os.getpid())
            if process_tree.was_started_with(pid, CONTAINER_VARIABLE, container)
        ]

    def end(self) -> None:
        """Kill every process of the sandbox."""
        kill_all(lambda: process_tree.descendants(os.getpid()))

    def _run(self, message: Message, descriptors: list[int]) -> int:
        """Start a program; its pid, or OSError."""
        report, reporter = os.pipe()
        pid = os.fork()
        if pid == 0:
            _exec_in_container(self, message, descriptors, reporter)
        os.close(reporter)
        with os.fdopen(report, "rb") as file:
            error = file.read()
        if error:
            os.waitpid(pid, 0)
            number, _, text = error.partition(b" ")
            raise OSError(int(number), text.decode(errors="replace"))
        return pid

    def _signal(self, key: int, number: int, to_group: bool) -> None:
        for pid, known in self._running.items():
            if known == key:
                # It has not been reaped, so the pid is still its own.
                _kill(-pid if to_group else pid, number)

    def _kill_container(self, container: str) -> None:
        kill_all(lambda: self.members(container), self._reap)

    def _reap(self) -> None:
        """Reap all children that have ended, and report those that the node started."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            number = self._running.pop(pid, None)
            if number is not None:
                self.send(event="ended", id=-number, code=os.waitstatus_to_exitcode(status))


class NamespacePodInit(PodInit):
    """The same as PID 1 of its own namespaces, with a mount namespace per container."""

    def __init__(self, control: socket, lifeline: int) -> None:
        super().__init__(control, lifeline)
        self._mount_namespaces: dict[str, int] = {}

    def mount(self, container: str, scratch: str, mounts: list[tuple[str, str, bool]]) -> None:
        """Have a short-lived child build a mount namespace, and keep a descriptor of it."""
        report, reporter = os.pipe()
        leave, left = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(left)
            _build_mount_namespace(scratch, mounts, reporter, leave)
        os.close(reporter)
        os.close(leave)
        answer = os.read(report, 4096)
        os.close(report)
        if answer == b"built":
            path = f"/proc/{pid}/ns/mnt"
            self._mount_namespaces[container] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        os.close(left)
        os.waitpid(pid, 0)
        if answer != b"built":
            number, _, text = answer.partition(b" ")
            raise OSError(int(number or 5), text.decode(errors="replace"))

    def enter(self, container: str) -> None:
        if container in self._mount_namespaces:
            syscalls.enter(self._mount_namespaces[container])

    def members(self, container: str) -> list[int]:
        wanted = os.fstat(self._mount_namespaces[container]).st_ino
        others = (pid for pid in process_tree.parents() if pid != os.getpid())
        return [pid for pid in others if _mount_namespace_of(pid) == wanted]

    def end(self) -> None:
        """Nothing to do: the kernel kills a PID namespace with its first process."""


def _mount_namespace_of(pid: int) -> int:
    try:
        return os.stat(f"/proc/{pid}/ns/mnt").st_ino
    except OSError:
        return 0


def _build_mount_namespace(
    scratch: str, mounts: list[tuple[str, str, bool]], reporter: int, leave: int
) -> NoReturn:
    """In a child: build it, report, stay until the parent has its descriptor. Never returns."""
    try:
        syscalls.unshare(syscalls.NEW_MOUNTS)
        rootfs.build(scratch, mounts)
        os.write(reporter, b"built")
        os.read(leave, 1)
    except OSError as error:
        os.write(reporter, f"{error.errno or 0} {describe(error)}".encode()[:4000])
    finally:
        os._exit(0)


def _exec_in_container(
    init: PodInit, message: Message, descriptors: list[int], reporter: int
) -> NoReturn:
    """In a child: exec the program, or report the error. Never returns."""
    try:
        set_wakeup_fd(-1)
        os.setsid()
        _take_terminal(descriptors[0])
        init.enter(message["container"])
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        _chdir(message["directory"])
        for number in _RESET_SIGNALS:
            signal(number, SIG_DFL)
        _exec(message["argv"], message["env"])
    except OSError as error:
        os.write(reporter, f"{error.errno or 0} {describe(error)}".encode()[:4000])
    finally:
        os._exit(127)


def _take_terminal(descriptor: int) -> None:
    """Let the terminal of an `mpijob exec` control the new session, so that Ctrl-C works."""
    if not os.isatty(descriptor):
        return
    from fcntl import ioctl  # noqa: PLC0415 — few programs have a terminal
    from termios import TIOCSCTTY  # noqa: PLC0415

    try:  # noqa: SIM105
        ioctl(descriptor, TIOCSCTTY, 0)
    except OSError:
        pass  # it controls another session


def _chdir(directory: str) -> None:
    try:
        os.chdir(directory)
    except OSError as error:
        raise OSError(error.errno, f"working directory: {error.strerror}", directory) from None


def _exec(argv: list[str], env: dict[str, str]) -> NoReturn:
    program = argv[0]
    if "/" in program:
        os.execve(program, argv, env)  # noqa: S606
    refused: OSError | None = None
    for directory in env.get("PATH", os.defpath).split(":"):
        try:
            os.execve(f"{directory or '.'}/{program}", argv, env)  # noqa: S606
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            refused = error
    raise refused or FileNotFoundError(2, f"not found in PATH: {program}")


def kill_all(members: Callable[[], list[int]], reap: Callable[[], None] | None = None) -> None:
    """Kill until none is left: a process may fork while others are killed."""
    waited = 0.001
    while pids := members():
        for pid in pids:
            _kill(pid, SIGKILL)
        (reap or _reap_quietly)()
        select.select([], [], [], waited)
        waited = min(waited * 2, 0.05)


def _kill(pid: int, number: int) -> None:
    try:  # noqa: SIM105
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _reap_quietly() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def serve(
    control: socket,
    wakeup: int,
    reap: Callable[[], None],
    handle: Callable[[Message, list[int]], None],
    lifeline: int | None = None,
) -> None:
    """Reap children and handle requests, until the control socket or the lifeline is closed."""
    inbox, poll = messages.Inbox(control), select.poll()
    for descriptor in (control.fileno(), wakeup, *(() if lifeline is None else (lifeline,))):
        poll.register(descriptor, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll()}
        if lifeline in ready:
            return
        if wakeup in ready:
            os.read(wakeup, 4096)
        reap()
        if control.fileno() in ready:
            try:
                requests = inbox.read()
            except EOFError:
                return
            for message, descriptors in requests:
                handle(message, descriptors)


def wake_on_child() -> int:
    """A descriptor that becomes readable when a child ends."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal(SIGCHLD, lambda number, frame: None)
    set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def describe(error: OSError) -> str:
    """An error as one line, with the file that it is about."""
    text = error.strerror or str(error)
    return f"{text}: {error.filename}" if error.filename else text
