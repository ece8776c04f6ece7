"""Accepts connections, and takes them through their TLS handshake.

asyncio's own server does not wait for handshakes when it closes: if the event loop ends meanwhile,
their sockets stay open.
"""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from ssl import SSLContext
from typing import TypeAlias

logger = logging.getLogger(__name__)

Protocols: TypeAlias = Callable[[], asyncio.Protocol]

_BACKLOG = 128
_HANDSHAKE_SECONDS = 10.0
_CLOSE_SECONDS = 1.0
_PAUSE_SECONDS = 1.0  # until files may be closed again
_NO_MORE_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class CannotListen(OSError):
    """The port is in use, or may not be used."""


def listening(host: str | None, port: int) -> socket.socket:
    """A socket whose connections wait in the kernel; by default on every address."""
    dual = host is None and socket.has_dualstack_ipv6()
    try:
        found = socket.create_server(
            (host or "", port),
            family=socket.AF_INET6 if dual else socket.AF_INET,
            backlog=_BACKLOG,
            dualstack_ipv6=dual,
        )
    except OSError as error:
        raise CannotListen(str(error)) from error
    found.setblocking(False)
    return found


class Listener:
    """A listening socket, and the connections whose handshake has not ended."""

    def __init__(
        self,
        listening: socket.socket,
        context: SSLContext,
        protocols: Protocols,
        has_room: Callable[[int], bool],
    ) -> None:
        """`has_room` decides about one more connection beside so many handshakes."""
        self._listening = listening
        self._context = context
        self._protocols = protocols
        self._has_room = has_room
        self._handshakes: dict[asyncio.Task[None], socket.socket] = {}
        self._resuming: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Accept connections from now on."""
        self._resuming = None
        asyncio.get_running_loop().add_reader(self._listening, self._accept)

    async def close(self) -> None:
        """Accept no more connections, and end all handshakes."""
        self._pause()
        self._listening.close()
        for connection in self._handshakes.values():
            # Its handshake fails, and asyncio closes it: cancelling would leave it open if it has
            # only just been accepted.
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        if self._handshakes:
            await asyncio.wait(self._handshakes, timeout=_CLOSE_SECONDS)

    def _accept(self) -> None:
        for _ in range(_BACKLOG):
            try:
                connection, _ = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _NO_MORE_FILES:
                    raise
                logger.warning("Cannot accept a connection", extra={"error": str(error)})
                self._pause()
                loop = asyncio.get_running_loop()
                self._resuming = loop.call_later(_PAUSE_SECONDS, self.start)
                return
            self._begin(connection)

    def _begin(self, connection: socket.socket) -> None:
        if not self._has_room(len(self._handshakes)):
            connection.close()
            return
        connection.setblocking(False)
        task = asyncio.create_task(self._handshake(connection))
        self._handshakes[task] = connection
        task.add_done_callback(self._handshakes.pop)

    async def _handshake(self, connection: socket.socket) -> None:
        with suppress(OSError):  # not TLS, does not trust us, or has left
            await asyncio.get_running_loop().connect_accepted_socket(
                self._protocols,
                connection,
                ssl=self._context,
                ssl_handshake_timeout=_HANDSHAKE_SECONDS,
            )

    def _pause(self) -> None:
        if self._resuming:
            self._resuming.cancel()
        asyncio.get_running_loop().remove_reader(self._listening)
