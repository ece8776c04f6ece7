"""This machine, as a place for sandboxes: the node's side of the warden and the keepers."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import count, pairwise
from pathlib import Path
from typing import Any

from . import messages
from .path_translation import Translation
from .process_tree import RUN_VARIABLE
from .protocol import Command, Frame, Kind, Mount, SandboxError, StartError

# The packages above ours are stood in for, not loaded: they need more than a helper has.
_START = """
import sys
for name, path in zip(("mpi_operator", "mpi_operator.local"), sys.argv[1:3]):
    package = sys.modules[name] = type(sys)(name)
    package.__path__ = [path]
from mpi_operator.local.sandbox import fork_server
fork_server.main(int(sys.argv[3]))
"""
_END_SECONDS = 10.0


class Link:
    """Messages to a helper, and what it answers."""

    def __init__(self, sock: socket.socket, on_end: Callable[[], None]) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._inbox = messages.Inbox(sock)
        self._outbox: list[tuple[bytes, tuple[int, ...]]] = []
        self._on_end = on_end
        self._numbers = count(1)
        self._expected: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._loop = asyncio.get_running_loop()
        self._is_open = True
        self._loop.add_reader(sock.fileno(), self._read)

    def number(self) -> int:
        return next(self._numbers)

    def expect(self, key: int) -> asyncio.Future[dict[str, Any]]:
        """What the helper will say about a number next."""
        self._expected[key] = self._loop.create_future()
        if not self._is_open:
            self._expected[key].cancel()
        return self._expected[key]

    def forget(self, key: int) -> None:
        self._expected.pop(key, None)

    async def ask(self, descriptors: tuple[int, ...] = (), **message: Any) -> dict[str, Any]:
        """Send a message and wait for the answer; SandboxError if none will come."""
        key = message.setdefault("id", self.number())
        answer = self.expect(key)
        self.tell(descriptors, **message)
        return await answered(answer)

    def tell(self, descriptors: tuple[int, ...] = (), **message: Any) -> None:
        """Send a message that has no answer."""
        if not self._is_open:
            return
        # They are sent when the socket has room, and the caller may close them before that.
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
        self._on_end()

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
    """Sandboxes of this machine, all ended when this process ends, however it does."""

    def __init__(self, process: subprocess.Popen[bytes], sock: socket.socket, kind: Kind) -> None:
        self.kind = kind
        self.why_plain = ""
        self._process = process
        self._warden = Link(sock, self._lost)
        self._open: set[LocalSandbox] = set()

    @classmethod
    async def start(cls, *, run: Path, kind: Kind | None = None) -> "LocalHost":
        """Start a warden, and find out which kind of sandbox can be had unless one is asked for.

        `why_plain` says why it is not namespaces, where it is not.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            host = cls(_start_warden(theirs.fileno(), run), ours, kind or Kind.NAMESPACES)
        if kind is Kind.PLAIN:
            host.why_plain = "plain sandboxes were asked for"
        elif trouble := await host._trouble_with_namespaces(is_wanted=kind is not None):
            if kind is not None:
                await host.close()
                raise SandboxError(f"namespaces cannot be used here: {trouble}")
            host.kind, host.why_plain = Kind.PLAIN, trouble
        return host

    async def open(self, frame: Frame) -> "LocalSandbox":
        """A sandbox for one pod; SandboxError if it cannot be made."""
        ours, theirs = socket.socketpair()
        number = self._warden.number()
        gone = self._warden.expect(number)
        sandbox = LocalSandbox(self, number, frame, Link(ours, lambda: None), gone)
        self._open.add(sandbox)
        gone.add_done_callback(lambda _: self._open.discard(sandbox))
        ready = sandbox.link.expect(0)
        with theirs:
            self._warden.tell(
                (theirs.fileno(),),
                op="open",
                id=number,
                kind=self.kind.value,
                hostname=frame.hostname,
                memory=[(str(path), options) for path, options in frame.memory.items()],
            )
        await sandbox.settle(ready)
        return sandbox

    def kill(self, number: int) -> None:
        """End the keeper of a sandbox."""
        self._warden.tell(op="kill", id=number)

    async def close(self) -> None:
        """End all sandboxes and the warden. Safe to call twice."""
        self._warden.close()
        # Without a timeout of its own: with one it would look now and then, up to 50 ms late.
        ending = asyncio.ensure_future(asyncio.to_thread(self._process.wait))
        await asyncio.wait([ending], timeout=_END_SECONDS)
        if not ending.done():
            self._process.kill()
        await ending

    def _lost(self) -> None:
        """The warden is gone, and so are the sandboxes."""

    async def _trouble_with_namespaces(self, *, is_wanted: bool) -> str:
        if sys.platform != "linux":
            return f"{sys.platform} has none"
        if not is_wanted and not has_network():
            return (
                "this machine has no network but loopback,"
                " and an MPI does not connect different hosts over that"
            )
        trouble = str((await self._warden.ask(op="try"))["trouble"])
        return f"this user may not make them ({trouble})" if trouble else ""


class LocalProcess:
    """A program in a sandbox."""

    def __init__(
        self, link: Link, number: int, pid: int, end: asyncio.Future[dict[str, Any]]
    ) -> None:
        self.pid = pid
        self._link = link
        self._number = number
        self._end = end

    async def wait(self) -> int:
        answer = await answered(self._end)
        return int(answer["code"])

    def signal(self, number: int, *, group: bool = False) -> None:
        if not self._end.done():
            self._link.tell(op="signal", id=self._number, number=int(number), group=group)


class LocalSandbox:
    """One pod, seen from the node."""

    def __init__(
        self,
        host: LocalHost,
        number: int,
        frame: Frame,
        link: Link,
        gone: asyncio.Future[dict[str, Any]],
    ) -> None:
        self.link = link
        self._host = host
        self._number = number
        self._frame = frame
        self._gone = gone
        self._translations: dict[str, Translation] = {}
        gone.add_done_callback(lambda _: link.close())

    async def settle(self, ready: asyncio.Future[dict[str, Any]]) -> None:
        """Wait for the keeper's first words."""
        await asyncio.wait([ready, self._gone], return_when=asyncio.FIRST_COMPLETED)
        if ready.done() and not ready.cancelled() and ready.result()["event"] == "ready":
            return
        words = ready.result()["error"] if ready.done() and not ready.cancelled() else ""
        await self.close()
        raise SandboxError(f"the sandbox of {self._frame.hostname} cannot be made: {words}")

    async def furnish(self, container: str, mounts: Sequence[Mount]) -> None:
        if self._host.kind is Kind.PLAIN:
            self._translations[container] = Translation(mounts)
            return
        scratch = self._frame.directory / "root"
        scratch.mkdir(exist_ok=True)
        answer = await self.link.ask(
            op="furnish",
            container=container,
            scratch=str(scratch),
            mounts=[(str(mount.source), mount.target, mount.read_only) for mount in mounts],
        )
        if answer["event"] == "failed":
            raise StartError(answer["error"], answer["errno"])

    def seen(self, container: str, text: str) -> str:
        translation = self._translations.get(container)
        return translation(text) if translation else text

    async def run(
        self, container: str, command: Command, stdio: tuple[int, int, int]
    ) -> LocalProcess:
        number = self.link.number()
        end = self.link.expect(-number)  # before it starts, for it may end before we look again
        answer = await self.link.ask(
            stdio,
            op="run",
            id=number,
            container=container,
            argv=[self.seen(container, word) for word in command.argv],
            env=self._environment(container, command.env),
            directory=self.seen(container, command.directory),
        )
        if answer["event"] == "failed":
            self.link.forget(-number)
            raise StartError(answer["error"], answer["errno"])
        return LocalProcess(self.link, number, int(answer["pid"]), end)

    async def clear(self, container: str) -> None:
        with contextlib.suppress(SandboxError):
            await self.link.ask(op="clear", container=container)

    async def close(self) -> None:
        self.link.close()
        if not self._gone.done():
            if self._host.kind is Kind.NAMESPACES:
                self._host.kill(self._number)
            await asyncio.wait([self._gone])

    async def closed(self) -> str:
        await asyncio.wait([self._gone])
        return "" if self._gone.cancelled() else str(self._gone.result()["error"])

    def _environment(self, container: str, env: Mapping[str, str]) -> dict[str, str]:
        return {name: self.seen(container, value) for name, value in env.items()}


async def answered(answer: asyncio.Future[dict[str, Any]]) -> dict[str, Any]:
    """An answer; SandboxError where the helper is gone, and only a cancellation of us cancels."""
    await asyncio.wait([answer])
    if answer.cancelled():
        raise SandboxError("the sandbox is gone")
    return answer.result()


def has_network(table: Path = Path("/proc/net/fib_trie")) -> bool:
    """Whether this machine has an address besides that of loopback."""
    try:
        lines = table.read_text().splitlines()
    except OSError:
        return True  # nobody knows, so probably
    # An address is on the line before the one that says what it is.
    local = (before for before, line in pairwise(lines) if "/32 host LOCAL" in line)
    return any(" 127." not in before for before in local)


def _start_warden(descriptor: int, run: Path) -> subprocess.Popen[bytes]:
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
