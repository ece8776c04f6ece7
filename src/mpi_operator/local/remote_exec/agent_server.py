"""Serves the agents that stand in for ssh: how a launcher starts daemons in its workers.

There is no sshd. Every pod has an `ssh`, an `rsh` and a socket. What the agent (`agent.py`) asks
for at the socket of its pod is run in the sandbox of the pod that has the host name.

    mpirun ──► agent HOST COMMAND ──socket of the launcher──► node ──► /bin/sh in HOST's sandbox
                    └──────────── descriptors 0, 1, 2 ───────────────────────┘
"""

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import msgspec

from mpi_operator.local.sandbox.protocol import Command, Process, SandboxError, StartError
from mpi_operator.local.socket_address import address

from .stand_ins import SOCKET

_FAILED = 255
_MAX_BYTES = 1 << 24


class Unreachable(Exception):
    """The command cannot be run; the agent prints the sentence."""


Stdio: TypeAlias = tuple[int, int, int]


class Request(msgspec.Struct, frozen=True):
    """What an agent asks for: a shell command on a host, or a rank with all it needs."""

    stdio: Stdio
    host: str = ""
    shell: str = ""
    rank: Command | None = None
    wants_input: bool = False
    """It asks for the input of its job instead, and becomes a rank itself."""


# Starts what an agent asks for.
Start: TypeAlias = Callable[[Request], Awaitable[Process]]


class AgentServer:
    """Listens on the socket for the agents of one pod."""

    def __init__(self, directory: Path, start: Start, given: int | None = None) -> None:
        self._start = start
        self._given = given  # what a rank reads that asks for input
        self._loop = asyncio.get_running_loop()
        self._connections: set[asyncio.Task[None]] = set()
        self._socket = _listen(directory)
        self._loop.add_reader(self._socket.fileno(), self._accept)

    async def close(self) -> None:
        """Stop forwarding, and kill what agents have started."""
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self) -> None:
        with suppress(BlockingIOError, ConnectionError):
            connection, _ = self._socket.accept()
            connection.setblocking(False)
            task = self._loop.create_task(self._serve(connection))
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)

    async def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(ConnectionError, EOFError):
            request = await _request(connection)
            try:
                if request.wants_input:
                    given = [] if self._given is None else [self._given]
                    socket.send_fds(connection, [b"\0"], given)
                    return
                process = await self._start(request)
            except (Unreachable, StartError, SandboxError) as error:
                answer = bytes([_FAILED]) + f"mpi-operator: {error}".encode()
            else:
                answer = bytes([await _exit_code(process, connection)])
            finally:
                for descriptor in request.stdio:
                    os.close(descriptor)
            await self._loop.sock_sendall(connection, answer)


async def _exit_code(process: Process, connection: socket.socket) -> int:
    """Forward signals until the process ends; kill it when the agent is gone."""
    ended = asyncio.ensure_future(process.wait())
    forwarding = asyncio.ensure_future(_forward_signals(process, connection))
    try:
        await asyncio.wait([ended, forwarding], return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            process.signal(signal.SIGKILL, group=True)
        code = await ended
    except SandboxError:
        return _FAILED  # the worker is gone, and the command with it
    except asyncio.CancelledError:
        process.signal(signal.SIGKILL, group=True)
        raise
    finally:
        for task in (ended, forwarding):
            task.cancel()
        await asyncio.gather(ended, forwarding, return_exceptions=True)
    return code if code >= 0 else 128 - code


async def _forward_signals(process: Process, connection: socket.socket) -> None:
    """Forward signals until the agent is gone."""
    with suppress(ConnectionError):
        while numbers := await asyncio.get_running_loop().sock_recv(connection, 64):
            for number in numbers:
                process.signal(number, group=True)


async def _request(connection: socket.socket) -> Request:
    """What an agent asks for; EOFError if it is gone or is not an agent."""
    data, descriptors = b"", list[int]()
    try:
        while len(data) < 4 or len(data) < 4 + _length(data):
            more, received = await _receive(connection)
            data += more
            descriptors += received
        stdin, stdout, stderr = descriptors
        return parsed(os.fsdecode(data[4:]).split("\0"), (stdin, stdout, stderr))
    except (EOFError, ValueError):
        for descriptor in descriptors:
            os.close(descriptor)
        raise EOFError from None


def parsed(fields: Sequence[str], stdio: Stdio) -> Request:
    """A request from its fields; ValueError if it is malformed."""
    verb, *rest = fields
    if verb == "run":
        host, *command = rest
        return Request(stdio, host=host, shell="\0".join(command))
    if verb == "input":
        return Request(stdio, wants_input=True)
    directory, count, *words = rest
    argv, variables = words[: int(count)], words[int(count) :]
    env = dict(variable.partition("=")[::2] for variable in variables)
    return Request(stdio, rank=Command(argv, env, directory))


async def _receive(connection: socket.socket) -> tuple[bytes, list[int]]:
    await _readable(connection)
    data, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, 3)
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    if not data:
        raise EOFError
    return data, list(descriptors)


async def _readable(connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(connection.fileno(), _resolve, ready)
    try:
        await ready
    finally:
        loop.remove_reader(connection.fileno())


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _length(data: bytes) -> int:
    length = int.from_bytes(data[:4], "big")
    if length > _MAX_BYTES:
        raise ValueError("the request is too long")
    return length


def _listen(directory: Path) -> socket.socket:
    listener = socket.socket(
        socket.AF_UNIX, socket.SOCK_STREAM | getattr(socket, "SOCK_NONBLOCK", 0)
    )
    listener.setblocking(False)
    with address(directory, SOCKET) as place:
        listener.bind(place)
    listener.listen(128)
    return listener
