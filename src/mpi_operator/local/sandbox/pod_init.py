"""The keeper of one sandbox: starts its processes, waits for them, and is the end of them.

One per pod, forked by the warden and never replaced by another program. In namespaces it is process
1 of its own, so that the kernel ends everything in the sandbox when it ends. Without namespaces it
adopts the orphans of its descendants, and so finds all of them when it is time to end them.

It ends when its node closes the socket, or when the warden is gone: nothing outlives both.
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

# Python ignores two of them, and a warden more; a program expects the defaults.
_RESET_SIGNALS = (1, 2, 3, 10, 12, 13, 15, 17, 25)


class Keeper:
    """One sandbox, seen from its inside."""

    def __init__(self, control: socket, lifeline: int) -> None:
        self._control = control
        self._lifeline = lifeline
        self._inbox = messages.Inbox(control)
        self._running: dict[int, int] = {}  # pid → the node's number for it
        self._wakeup = wake_on_child()

    def serve(self) -> None:
        """Do what the node asks until it goes away."""
        poll = select.poll()
        for descriptor in (self._control.fileno(), self._lifeline, self._wakeup):
            poll.register(descriptor, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._lifeline in ready:
                return
            if self._wakeup in ready:
                os.read(self._wakeup, 4096)
            self._bury()
            if self._control.fileno() in ready:
                try:
                    messages = self._inbox.read()
                except EOFError:
                    return
                for message, descriptors in messages:
                    self._obey(message, descriptors)

    def tell(self, **facts: object) -> None:
        """Tell the node, if it is still there."""
        try:  # noqa: SIM105 — contextlib costs 3 ms
            messages.send(self._control, facts)
        except ConnectionError:
            pass  # the next read says so, too

    def _obey(self, message: Message, descriptors: list[int]) -> None:
        operation = message["op"]
        try:
            if operation == "furnish":
                self.furnish(message["container"], message["scratch"], message["mounts"])
                self.tell(event="done", id=message["id"])
            elif operation == "run":
                pid = self._run(message, descriptors)
                self._running[pid] = message["id"]
                self.tell(event="started", id=message["id"], pid=pid)
            elif operation == "signal":
                self._signal(message["id"], message["number"], message["group"])
            elif operation == "clear":
                self._clear(message["container"])
                self.tell(event="done", id=message["id"])
        except OSError as error:
            self.tell(
                event="failed", id=message["id"], errno=error.errno or 0, error=sentence(error)
            )
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def furnish(self, container: str, scratch: str, mounts: list[tuple[str, str, bool]]) -> None:
        """Make a container's view of the files. Without namespaces there is nothing to make."""

    def enter(self, container: str) -> None:
        """In a new process: see the files as the container does."""

    def members(self, container: str) -> list[int]:
        """Every process of a container."""
        return [
            pid
            for pid in process_tree.descendants(os.getpid())
            if process_tree.was_started_with(pid, CONTAINER_VARIABLE, container)
        ]

    def end(self) -> None:
        """End every process of the sandbox."""
        kill_all(lambda: process_tree.descendants(os.getpid()))

    def _run(self, message: Message, descriptors: list[int]) -> int:
        """Start a program; its pid, or the error of its start."""
        report, reporter = os.pipe()
        pid = os.fork()
        if pid == 0:
            _become(self, message, descriptors, reporter)
        os.close(reporter)
        with os.fdopen(report, "rb") as file:
            trouble = file.read()
        if trouble:
            os.waitpid(pid, 0)
            number, _, text = trouble.partition(b" ")
            raise OSError(int(number), text.decode(errors="replace"))
        return pid

    def _signal(self, key: int, number: int, to_group: bool) -> None:
        for pid, known in self._running.items():
            if known == key:
                # Nobody has waited for it yet, so the pid is still its own.
                _kill(-pid if to_group else pid, number)

    def _clear(self, container: str) -> None:
        kill_all(lambda: self.members(container), self._bury)

    def _bury(self) -> None:
        """Wait for all who have ended, and tell of those that the node started."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            number = self._running.pop(pid, None)
            if number is not None:
                self.tell(event="ended", id=-number, code=os.waitstatus_to_exitcode(status))


class NamespaceKeeper(Keeper):
    """The same as process 1 of its own namespaces, with a view of the files per container."""

    def __init__(self, control: socket, lifeline: int) -> None:
        super().__init__(control, lifeline)
        self._views: dict[str, int] = {}

    def furnish(self, container: str, scratch: str, mounts: list[tuple[str, str, bool]]) -> None:
        """Have a short-lived child make the view, and keep hold of it."""
        report, reporter = os.pipe()
        leave, left = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(left)
            _make_view(scratch, mounts, reporter, leave)
        os.close(reporter)
        os.close(leave)
        trouble = os.read(report, 4096)
        os.close(report)
        if trouble == b"made":
            self._views[container] = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        os.close(left)
        os.waitpid(pid, 0)
        if trouble != b"made":
            number, _, text = trouble.partition(b" ")
            raise OSError(int(number or 5), text.decode(errors="replace"))

    def enter(self, container: str) -> None:
        if container in self._views:
            syscalls.enter(self._views[container])

    def members(self, container: str) -> list[int]:
        view = os.fstat(self._views[container]).st_ino
        return [
            pid for pid in process_tree.parents() if pid != os.getpid() and _view_of(pid) == view
        ]

    def end(self) -> None:
        """Nothing to do: the kernel ends a namespace with its first process."""


def _view_of(pid: int) -> int:
    try:
        return os.stat(f"/proc/{pid}/ns/mnt").st_ino
    except OSError:
        return 0


def _make_view(
    scratch: str, mounts: list[tuple[str, str, bool]], reporter: int, leave: int
) -> NoReturn:
    """In a child: build, say so, stay until the parent has hold of the namespace. Never returns."""
    try:
        syscalls.unshare(syscalls.NEW_MOUNTS)
        rootfs.build(scratch, mounts)
        os.write(reporter, b"made")
        os.read(leave, 1)
    except OSError as error:
        os.write(reporter, f"{error.errno or 0} {sentence(error)}".encode()[:4000])
    finally:
        os._exit(0)


def _become(keeper: Keeper, message: Message, descriptors: list[int], reporter: int) -> NoReturn:
    """In a child: turn into the program, or write why not. Never returns."""
    try:
        set_wakeup_fd(-1)
        os.setsid()
        keeper.enter(message["container"])
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        _chdir(message["directory"])
        for number in _RESET_SIGNALS:
            signal(number, SIG_DFL)
        _exec(message["argv"], message["env"])
    except OSError as error:
        os.write(reporter, f"{error.errno or 0} {sentence(error)}".encode()[:4000])
    finally:
        os._exit(127)


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


def kill_all(members: Callable[[], list[int]], bury: Callable[[], None] | None = None) -> None:
    """Kill until there is nobody left: somebody may start another one meanwhile."""
    waited = 0.001
    while pids := members():
        for pid in pids:
            _kill(pid, SIGKILL)
        (bury or _bury_silently)()
        select.select([], [], [], waited)
        waited = min(waited * 2, 0.05)


def _kill(pid: int, number: int) -> None:
    try:  # noqa: SIM105
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _bury_silently() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def wake_on_child() -> int:
    """A descriptor that can be read once a child has ended."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal(SIGCHLD, lambda number, frame: None)
    set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def sentence(error: OSError) -> str:
    words = error.strerror or str(error)
    return f"{words}: {error.filename}" if error.filename else words
