"""Sandboxes on this machine: the node's side of the fork server and the init processes."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from typing import Any

from . import messages
from .path_translation import Translation
from .process_tree import RUN_VARIABLE
from .protocol import Command, Kind, Mount, SandboxConfig, SandboxError, StartError

# The packages above ours are replaced by empty ones: they import what a helper does not have.
_START = """
import sys
for name, path in zip(("mpi_operator", "mpi_operator.local"), sys.argv[1:3]):
    package = sys.modules[name] = type(sys)(name)
    package.__path__ = [path]
from mpi_operator.local.sandbox import fork_server
fork_server.main(int(sys.argv[3]))
fork_server.os._exit(0)  # Python's own end would take longer, and a person waits for it
"""
_END_SECONDS = 10.0


class Connection:
    """Sends messages to a helper process, and receives its answers."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._inbox = messages.Inbox(sock)
        self._outbox: list[tuple[bytes, tuple[int, ...]]] = []
        self._numbers = count(1)
        self._expected: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._loop = asyncio.get_running_loop()
        self._is_open = True
        self._loop.add_reader(sock.fileno(), self._read)

    def new_id(self) -> int:
        return next(self._numbers)

    def expect(self, key: int) -> asyncio.Future[dict[str, Any]]:
        """The next message of the helper about an id."""
        self._expected[key] = self._loop.create_future()
        if not self._is_open:
            self._expected[key].cancel()
        return self._expected[key]

    def forget(self, key: int) -> None:
        self._expected.pop(key, None)

    async def ask(self, descriptors: tuple[int, ...] = (), **message: Any) -> dict[str, Any]:
        """Send a message and wait for the answer; SandboxError if the helper is gone."""
        key = message.setdefault("id", self.new_id())
        answer = self.expect(key)
        self.send(descriptors, **message)
        return await answered(answer)

    def send(self, descriptors: tuple[int, ...] = (), **message: Any) -> None:
        """Send a message that has no answer."""
        if not self._is_open:
            return
        # The socket may be full, and the caller may close them before they are sent.
        kept = tuple(os.dup(descriptor) for descriptor in descriptors)
        self._outbox.append((messages.frame(message, kept), kept))
        self._write()

    def close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        self._loop.remove_reader(self._socket.fileno())
        self._loop.remove_writer(self._socket.fileno())
        self._socket.close()
        for _, kept in self._outbox:
            _close(kept)
        self._outbox.clear()
        for answer in self._expected.values():
            answer.cancel()
        self._expected.clear()

    def _read(self) -> None:
        try:
            messages = self._inbox.read()
        except EOFError:
            self.close()
            return
        for message, _ in messages:
            answer = self._expected.pop(message.get("id", 0), None)
            if answer is not None and not answer.done():
                answer.set_result(message)

    def _write(self) -> None:
        try:
            while self._outbox:
                data, kept = self._outbox[0]
                sent = messages.send_some(self._socket, data, kept)
                _close(kept)
                if sent == len(data):
                    self._outbox.pop(0)
                else:
                    self._outbox[0] = (data[sent:], ())
        except BlockingIOError:
            self._loop.add_writer(self._socket.fileno(), self._write)
        except OSError:
            self.close()
        else:
            self._loop.remove_writer(self._socket.fileno())


class LocalHost:
    """Opens sandboxes on this machine. All of them end with this process, however it ends."""

    def __init__(self, process: subprocess.Popen[bytes], sock: socket.socket, kind: Kind) -> None:
        self.kind = kind
        self.why_plain = ""
        self._process = process
        self._fork_server = Connection(sock)

    @classmethod
    async def start(cls, *, run: Path, kind: Kind | None = None) -> "LocalHost":
        """Start the fork server, and choose the best kind of sandbox unless one is given.

        `why_plain` says why namespaces are not used, if they are not.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            host = cls(_start_fork_server(theirs.fileno(), run), ours, kind or Kind.NAMESPACES)
        if kind is Kind.PLAIN:
            host.why_plain = "plain sandboxes were requested"
        elif problem := await host._namespace_problem(is_wanted=kind is not None):
            if kind is not None:
                await host.close()
                raise SandboxError(f"namespaces cannot be used: {problem}")
            host.kind, host.why_plain = Kind.PLAIN, problem
        return host

    async def open(self, config: SandboxConfig) -> "LocalSandbox":
        """A sandbox for one pod; SandboxError if it cannot be created."""
        ours, theirs = socket.socketpair()
        number = self._fork_server.new_id()
        gone = self._fork_server.expect(number)
        connection = Connection(ours)
        kill = partial(self._fork_server.send, op="kill", id=number)
        sandbox = LocalSandbox(self.kind, config, connection, gone, kill)
        ready = connection.expect(0)
        with theirs:
            self._fork_server.send(
                (theirs.fileno(),),
                op="open",
                id=number,
                kind=self.kind.value,
                hostname=config.hostname,
                tmpfs=[(str(path), options) for path, options in config.tmpfs.items()],
            )
        await sandbox.wait_until_ready(ready)
        return sandbox

    async def close(self) -> None:
        """Close all sandboxes and end the fork server. Safe to call twice."""
        self._fork_server.close()
        # Not wait(timeout), which polls and may notice the end 50 ms late.
        ending = asyncio.ensure_future(asyncio.to_thread(self._process.wait))
        await asyncio.wait([ending], timeout=_END_SECONDS)
        if not ending.done():
            self._process.kill()
        await ending

    async def _namespace_problem(self, *, is_wanted: bool) -> str:
        if sys.platform != "linux":
            return f"{sys.platform} has no namespaces"
        if not is_wanted and not has_network():
            return "the only network interface is loopback, which MPIs do not use between hosts"
        error = str((await self._fork_server.ask(op="try"))["error"])
        return f"this user is not allowed to create them ({error})" if error else ""


class LocalProcess:
    """A program in a sandbox."""

    def __init__(
        self, connection: Connection, number: int, pid: int, end: asyncio.Future[dict[str, Any]]
    ) -> None:
        self.pid = pid
        self._connection = connection
        self._number = number
        self._end = end

    async def wait(self) -> int:
        answer = await answered(self._end)
        return int(answer["code"])

    def signal(self, number: int, *, group: bool = False) -> None:
        if not self._end.done():
            self._connection.send(op="signal", id=self._number, number=int(number), group=group)


class LocalSandbox:
    """The sandbox of one pod."""

    def __init__(
        self,
        kind: Kind,
        config: SandboxConfig,
        connection: Connection,
        gone: asyncio.Future[dict[str, Any]],
        kill: Callable[[], None],
    ) -> None:
        self._kind = kind
        self._config = config
        self._connection = connection
        self._kill = kill
        self._gone = gone
        self._translations: dict[str, Translation] = {}
        gone.add_done_callback(lambda _: connection.close())

    async def wait_until_ready(self, ready: asyncio.Future[dict[str, Any]]) -> None:
        """Wait for the first message of the init process; SandboxError if it has failed."""
        await asyncio.wait([ready, self._gone], return_when=asyncio.FIRST_COMPLETED)
        if ready.done() and not ready.cancelled() and ready.result()["event"] == "ready":
            return
        why = ready.result()["error"] if ready.done() and not ready.cancelled() else ""
        await self.close()
        raise SandboxError(f"cannot create the sandbox of {self._config.hostname}: {why}")

    async def mount(self, container: str, mounts: Sequence[Mount]) -> None:
        if self._kind is Kind.PLAIN:
            self._translations[container] = Translation(mounts)
            return
        scratch = self._config.directory / "root"
        scratch.mkdir(exist_ok=True)
        answer = await self._connection.ask(
            op="mount",
            container=container,
            scratch=str(scratch),
            mounts=[(str(mount.source), mount.target, mount.read_only) for mount in mounts],
        )
        if answer["event"] == "failed":
            raise StartError(answer["error"], answer["errno"])

    def _translated(self, container: str, text: str) -> str:
        translation = self._translations.get(container)
        return translation(text) if translation else text

    async def run(
        self, container: str, command: Command, stdio: tuple[int, int, int]
    ) -> LocalProcess:
        number = self._connection.new_id()
        end = self._connection.expect(-number)  # before it starts, because it may end at once
        answer = await self._connection.ask(
            stdio,
            op="run",
            id=number,
            container=container,
            argv=[self._translated(container, word) for word in command.argv],
            env=self._environment(container, command.env),
            directory=self._translated(container, command.directory),
        )
        if answer["event"] == "failed":
            self._connection.forget(-number)
            raise StartError(answer["error"], answer["errno"])
        return LocalProcess(self._connection, number, int(answer["pid"]), end)

    async def kill_container(self, container: str) -> None:
        with contextlib.suppress(SandboxError):
            await self._connection.ask(op="kill_container", container=container)

    async def close(self) -> None:
        self._connection.close()
        if not self._gone.done():
            if self._kind is Kind.NAMESPACES:
                self._kill()
            await asyncio.wait([self._gone])

    async def closed(self) -> str:
        await asyncio.wait([self._gone])
        return "" if self._gone.cancelled() else str(self._gone.result()["error"])

    def _environment(self, container: str, env: Mapping[str, str]) -> dict[str, str]:
        return {name: self._translated(container, value) for name, value in env.items()}


async def answered(answer: asyncio.Future[dict[str, Any]]) -> dict[str, Any]:
    """An answer; SandboxError if the helper is gone. Cancelling this does not cancel the answer."""
    await asyncio.wait([answer])
    if answer.cancelled():
        raise SandboxError("the sandbox is gone")
    return answer.result()


def has_network(table: Path = Path("/proc/net/fib_trie")) -> bool:
    """Whether this machine has an address other than loopback."""
    try:
        lines = table.read_text().splitlines()
    except OSError:
        return True  # unknown, so probably
    # An address is on the line before the one that says what it is.
    local = (before for before, line in pairwise(lines) if "/32 host LOCAL" in line)
    return any(" 127." not in before for before in local)


def _start_fork_server(descriptor: int, run: Path) -> subprocess.Popen[bytes]:
    packages = Path(__file__).parents[2], Path(__file__).parents[1]
    argv = [sys.executable, "-S", "-E", "-s", "-c", _START, *map(str, packages), str(descriptor)]
    return subprocess.Popen(
        argv,
        cwd="/",
        env={"PATH": os.defpath, RUN_VARIABLE: str(run)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[descriptor],
        start_new_session=True,
    )


def _close(descriptors: tuple[int, ...]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
