"""The fork server: one small process per node, from which all its sandboxes are forked.

It exists for two reasons. Forking a process of 10 MB that has everything loaded takes a
millisecond; starting a Python takes thirty, and a job may have 64 workers. And it outlives the
node, if only for a moment: however the node ends, the fork server reads the end of its socket and
kills every sandbox.

    node ──socket──► fork server ──fork──► init process of a pod ──fork──► its processes
      └───────────────────socket─────────────────▲

Run as `python -S -E -s -c …` (see `host.py`), so it imports next to nothing.
"""

from __future__ import annotations

import os
from _socket import AF_UNIX, SOCK_STREAM, socket

from . import messages, process_tree, syscalls
from .pod_init import NamespacePodInit, PodInit, describe, kill_all, serve, wake_on_child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from signal import SIG_IGN, SIGHUP, SIGINT, SIGKILL, SIGTERM, signal
    from typing import NoReturn

    from .messages import Message
else:
    from _signal import SIG_IGN, SIGHUP, SIGINT, SIGKILL, SIGTERM, signal

_POD_NAMESPACES = syscalls.NEW_MOUNTS | syscalls.NEW_NAMES | syscalls.NEW_IPC | syscalls.NEW_PIDS


def main(descriptor: int) -> None:
    """Serve the node at the other end of a socket until it closes."""
    for number in (SIGHUP, SIGINT, SIGTERM):
        signal(number, SIG_IGN)  # meant for the node; when it ends, it closes the socket
    adopts = _adopts_orphans()
    server = ForkServer(socket(AF_UNIX, SOCK_STREAM, 0, descriptor))
    try:
        server.serve()
    finally:
        server.end(adopts)


def _adopts_orphans() -> bool:
    try:
        syscalls.adopt_orphans()
    except (OSError, AttributeError):
        return False  # not Linux
    return True


class ForkServer:
    """Forks the init process of each pod, and reports its end."""

    def __init__(self, node: socket) -> None:
        self._node = node
        self._wakeup = wake_on_child()
        self._pod_inits: dict[int, int] = {}  # pid → the node's id for it
        self._has_plain = False
        # Only this process has the writing end: init processes read EOF when it is gone.
        self._lifeline, self._life = os.pipe()

    def serve(self) -> None:
        """Handle requests of the node until it closes the socket."""
        serve(self._node, self._wakeup, self._reap, self._handle)

    def end(self, adopts: bool) -> None:
        """Kill every sandbox, and all processes that a killed init process has left."""
        if not adopts:
            os.close(self._life)
            while self._pod_inits:
                self._reap(os.waitpid(-1, 0))
            return
        kill_all(lambda: process_tree.descendants(os.getpid()) if _has_children() else [])

    def _handle(self, message: Message, descriptors: list[int]) -> None:
        if message["op"] == "kill":
            for pid, number in self._pod_inits.items():
                if number == message["id"]:
                    os.kill(pid, SIGKILL)
            return
        if message["op"] == "try":
            self._send(event="tried", id=message["id"], error=_trial())
            return
        [control] = descriptors
        try:
            pid = self._fork(message, socket(AF_UNIX, SOCK_STREAM, 0, control))
        except OSError as error:
            self._send(event="closed", id=message["id"], error=describe(error))
        else:
            self._pod_inits[pid] = message["id"]

    def _send(self, **facts: object) -> None:
        try:  # noqa: SIM105
            messages.send(self._node, facts)
        except ConnectionError:
            pass  # the node is gone: the next read raises EOFError

    def _fork(self, message: Message, control: socket) -> int:
        try:
            if message["kind"] == "namespaces":
                return _fork_into_namespaces(
                    lambda: self._run_init(NamespacePodInit, message, control)
                )
            self._has_plain = True
            pid = os.fork()
            if pid == 0:
                os.setsid()
                self._run_init(PodInit, message, control)
            return pid
        finally:
            control.close()

    def _run_init(self, kind: type[PodInit], message: Message, control: socket) -> NoReturn:
        """In a new process: run as the init process of a pod until it ends. Never returns."""
        try:
            _close_all_but(control.fileno(), self._lifeline)
            init = kind(control, self._lifeline)
            try:
                _set_up(message)
            except OSError as error:
                init.send(event="broken", error=describe(error))
            else:
                init.send(event="ready")
                init.serve()
            init.end()
        finally:
            os._exit(0)

    def _reap(self, first: tuple[int, int] | None = None) -> None:
        while True:
            try:
                pid, _ = first or os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            first = None
            if pid == 0:
                return
            number = self._pod_inits.pop(pid, None)
            if number is not None:
                self._kill_strays()
                self._send(event="closed", id=number, error="")

    def _kill_strays(self) -> None:
        """Kill what a killed init process without namespaces has left."""
        if self._has_plain:
            kill_all(self._strays, _leave_for_later)

    def _strays(self) -> list[int]:
        parents = process_tree.parents()
        ours = [pid for pid, parent in parents.items() if parent == os.getpid()]
        return [
            stray
            for pid in ours
            if pid not in self._pod_inits
            for stray in (pid, *process_tree.descendants(pid))
        ]


def _has_children() -> bool:
    """Whether any descendant is left, because orphans become our children.

    Usually none is, and this spares reading the state of every process of the machine.
    """
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _leave_for_later() -> None:
    """Reap nothing here: `_reap` must see the init processes that end meanwhile."""


def _close_all_but(*kept: int) -> None:
    """Close what belongs to the fork server: others detect its end by EOF."""
    start = 3
    for descriptor in sorted(kept):
        os.closerange(start, descriptor)
        start = descriptor + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))


def _set_up(message: Message) -> None:
    """Inside the sandbox: set up what a pod has before any container starts."""
    if message["kind"] == "plain":
        _adopts_orphans()
        return
    syscalls.make_private("/")
    syscalls.mount_proc("/proc")
    syscalls.set_hostname(message["hostname"])
    for directory, options in message["tmpfs"]:
        syscalls.mount_tmpfs(directory, options)


def _fork_into_namespaces(inside: Callable[[], NoReturn]) -> int:
    """Fork a process that is PID 1 in its own namespaces; its pid.

    A process cannot move itself into another PID namespace, only its children. So a process in
    between forks it; when that one ends, the fork server adopts the child.
    """
    asks, ask = os.pipe()
    answer, answers = os.pipe()
    between = os.fork()
    if between == 0:
        _fork_in_namespaces(inside, ask, answer)
    os.close(ask)
    os.close(answer)
    try:
        said = os.read(asks, 4096)
        if said == b"map me":
            _map_users(between)
            os.write(answers, b"done")
            said = os.read(asks, 4096)
    finally:
        os.close(asks)
        os.close(answers)
        os.waitpid(between, 0)
    if not said.isdigit():
        raise OSError(said.decode(errors="replace") or "the namespaces could not be created")
    return int(said)


def _fork_in_namespaces(inside: Callable[[], NoReturn], ask: int, answer: int) -> NoReturn:
    """In a child: create the namespaces, fork into them, and exit."""
    try:
        syscalls.unshare(syscalls.NEW_USER)
        os.write(ask, b"map me")
        if not os.read(answer, 4):
            os._exit(1)
        syscalls.unshare(_POD_NAMESPACES)
        pid = os.fork()
        if pid == 0:
            os.setsid()
            inside()
        os.write(ask, str(pid).encode())
    except OSError as error:
        os.write(ask, describe(error).encode())
    finally:
        os._exit(0)


def _map_users(pid: int) -> None:
    """Map the users of a new namespace to the same users outside.

    An ordinary user is mapped to itself only, not to root: Open MPI refuses to run as root. Root
    keeps every user it had, or it could not read the files of others.
    """
    try:
        _write(f"/proc/{pid}/uid_map", _same(_read("/proc/self/uid_map")))
        _write(f"/proc/{pid}/gid_map", _same(_read("/proc/self/gid_map")))
    except PermissionError:
        _write(f"/proc/{pid}/setgroups", "deny")
        _write(f"/proc/{pid}/uid_map", f"{os.geteuid()} {os.geteuid()} 1")
        _write(f"/proc/{pid}/gid_map", f"{os.getegid()} {os.getegid()} 1")


def _same(table: str) -> str:
    rows = (line.split() for line in table.splitlines())
    return "".join(f"{inside} {inside} {count}\n" for inside, _, count in rows)


def _read(path: str) -> str:
    with open(path) as file:
        return file.read()


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())  # the kernel accepts a map in a single write only
    finally:
        os.close(descriptor)


def _trial() -> str:
    """Why namespaces cannot be created here; "" if they can. Found out by creating some."""
    report, reporter = os.pipe()
    try:
        os.waitpid(_fork_into_namespaces(lambda: _try(reporter)), 0)
        os.close(reporter)
        return os.read(report, 4096).decode(errors="replace")
    except OSError as error:
        os.close(reporter)
        return describe(error)
    finally:
        os.close(report)


def _try(reporter: int) -> NoReturn:
    """In new namespaces: set up a sandbox, and report the error, if any. Never returns."""
    try:
        _set_up({"kind": "namespaces", "hostname": "trial", "tmpfs": [("/tmp", "")]})  # noqa: S108
    except OSError as error:
        os.write(reporter, describe(error).encode())
    finally:
        os._exit(0)
