"""The warden: one small process per node, from which all its sandboxes are forked.

It exists for two reasons. Forking a process of 10 MB that has everything loaded takes a
millisecond; starting a Python takes thirty, and a job may have 64 workers. And it outlives the
node, if only for a moment: however the node ends, the warden reads the end of its socket, and ends
every sandbox.

    node ──socket──► warden ──fork──► keeper of a sandbox ──fork──► its processes
      └───────────────socket─────────────▲

Run as `python -S -E -s -c …` (see `host.py`), so it imports next to nothing.
"""

from __future__ import annotations

import os
import select
from _socket import AF_UNIX, SOCK_STREAM, socket

from . import messages, process_tree, syscalls
from .pod_init import Keeper, NamespaceKeeper, kill_all, sentence, wake_on_child

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
    """Serve the node at the other end of a socket, until it is gone."""
    for number in (SIGHUP, SIGINT, SIGTERM):
        signal(number, SIG_IGN)  # meant for the node, which tells us by closing the socket
    adopts = _adopts_orphans()
    warden = Warden(socket(AF_UNIX, SOCK_STREAM, 0, descriptor))
    try:
        warden.serve()
    finally:
        warden.end(adopts)


def _adopts_orphans() -> bool:
    try:
        syscalls.adopt_orphans()
    except (OSError, AttributeError):
        return False  # not Linux
    return True


class Warden:
    """Opens sandboxes and tells when they are gone."""

    def __init__(self, node: socket) -> None:
        self._node = node
        self._inbox = messages.Inbox(node)
        self._wakeup = wake_on_child()
        self._keepers: dict[int, int] = {}  # pid → the node's number for it
        self._has_plain = False
        # Its other end is held by nobody else: keepers read its end when we are gone.
        self._lifeline, self._life = os.pipe()

    def serve(self) -> None:
        poll = select.poll()
        for descriptor in (self._node.fileno(), self._wakeup):
            poll.register(descriptor, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._wakeup in ready:
                os.read(self._wakeup, 4096)
            self._bury()
            if self._node.fileno() in ready:
                try:
                    messages = self._inbox.read()
                except EOFError:
                    return
                for message, descriptors in messages:
                    self._obey(message, descriptors)

    def end(self, adopts: bool) -> None:
        """End every sandbox, and whatever a keeper that was killed has left to us."""
        if not adopts:
            os.close(self._life)
            while self._keepers:
                self._bury(os.waitpid(-1, 0))
            return
        kill_all(lambda: process_tree.descendants(os.getpid()))

    def _obey(self, message: Message, descriptors: list[int]) -> None:
        if message["op"] == "kill":
            for pid, number in self._keepers.items():
                if number == message["id"]:
                    os.kill(pid, SIGKILL)
            return
        if message["op"] == "try":
            self._tell(event="tried", id=message["id"], trouble=_trial())
            return
        [control] = descriptors
        try:
            pid = self._fork(message, socket(AF_UNIX, SOCK_STREAM, 0, control))
        except OSError as error:
            self._tell(event="closed", id=message["id"], error=sentence(error))
        else:
            self._keepers[pid] = message["id"]

    def _tell(self, **facts: object) -> None:
        try:  # noqa: SIM105
            messages.send(self._node, facts)
        except ConnectionError:
            pass  # the node is gone, as the next read says

    def _fork(self, message: Message, control: socket) -> int:
        try:
            if message["kind"] == "namespaces":
                return _fork_into_namespaces(lambda: self._keep(NamespaceKeeper, message, control))
            self._has_plain = True
            pid = os.fork()
            if pid == 0:
                os.setsid()
                self._keep(Keeper, message, control)
            return pid
        finally:
            control.close()

    def _keep(self, kind: type[Keeper], message: Message, control: socket) -> NoReturn:
        """In a new process: be the keeper of a sandbox to its end. Never returns."""
        try:
            _close_all_but(control.fileno(), self._lifeline)
            kept = kind(control, self._lifeline)
            try:
                _settle(message)
            except OSError as error:
                kept.tell(event="broken", error=sentence(error))
            else:
                kept.tell(event="ready")
                kept.serve()
            kept.end()
        finally:
            os._exit(0)

    def _bury(self, first: tuple[int, int] | None = None) -> None:
        while True:
            try:
                pid, _ = first or os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            first = None
            if pid == 0:
                return
            number = self._keepers.pop(pid, None)
            if number is not None:
                self._kill_strays()
                self._tell(event="closed", id=number, error="")

    def _kill_strays(self) -> None:
        """End what a keeper without namespaces has left to us, because it was killed itself."""
        if self._has_plain:
            kill_all(self._strays, _leave_for_later)

    def _strays(self) -> list[int]:
        parents = process_tree.parents()
        ours = [pid for pid, parent in parents.items() if parent == os.getpid()]
        return [
            stray
            for pid in ours
            if pid not in self._keepers
            for stray in (pid, *process_tree.descendants(pid))
        ]


def _leave_for_later() -> None:
    """Whom we wait for in between, the keepers among them, `_bury` would never hear of."""


def _close_all_but(*kept: int) -> None:
    """Hold nothing of the warden's: it is by ends of files that others know it is gone."""
    start = 3
    for descriptor in sorted(kept):
        os.closerange(start, descriptor)
        start = descriptor + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))


def _settle(message: Message) -> None:
    """Inside the sandbox: what the pod has of its own before any container starts."""
    if message["kind"] == "plain":
        _adopts_orphans()
        return
    syscalls.make_private("/")
    syscalls.mount_proc("/proc")
    syscalls.set_hostname(message["hostname"])
    for directory, options in message["memory"]:
        syscalls.mount_tmpfs(directory, options)


def _fork_into_namespaces(inside: Callable[[], NoReturn]) -> int:
    """Fork a process that is number 1 in namespaces of its own; its pid.

    A process cannot move itself to another pid namespace, only its children. So there is one in
    between; when it ends, the child is ours, because we adopt orphans.
    """
    asks, ask = os.pipe()
    answer, answers = os.pipe()
    between = os.fork()
    if between == 0:
        _stand_between(inside, ask, answer)
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
        raise OSError(said.decode(errors="replace") or "the namespaces could not be made")
    return int(said)


def _stand_between(inside: Callable[[], NoReturn], ask: int, answer: int) -> NoReturn:
    """In a child: make the namespaces, fork into them, and get out of the way."""
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
        os.write(ask, sentence(error).encode())
    finally:
        os._exit(0)


def _map_users(pid: int) -> None:
    """Let the users of a new namespace be the same as outside.

    Somebody else is mapped to themselves alone, and not to root: Open MPI refuses to run as root.
    Root keeps every user it had, else it could not read the files of others.
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
        os.write(descriptor, text.encode())  # the kernel takes a map in one write only
    finally:
        os.close(descriptor)


def _trial() -> str:
    """Why namespaces cannot be used here; "" if they can. Found out by making some."""
    report, reporter = os.pipe()
    try:
        os.waitpid(_fork_into_namespaces(lambda: _try(reporter)), 0)
        os.close(reporter)
        return os.read(report, 4096).decode(errors="replace")
    except OSError as error:
        os.close(reporter)
        return sentence(error)
    finally:
        os.close(report)


def _try(reporter: int) -> NoReturn:
    """In new namespaces: do what every sandbox does, and tell what goes wrong. Never returns."""
    try:
        _settle({"kind": "namespaces", "hostname": "trial", "memory": [("/tmp", "")]})  # noqa: S108
    except OSError as error:
        os.write(reporter, sentence(error).encode())
    finally:
        os._exit(0)
