"""Messages between a node, its fork server and the init processes of its pods.

    4 bytes: length · 1 byte: number of descriptors · the message, as `marshal` writes it

Both ends are the same Python and the socket is a private pair, so `marshal` is
safe here; unlike JSON it is built in, and a helper process must start in milliseconds. `_socket`
is used for the same reason: the public module costs 20 ms, for constants that are classes.
"""

from __future__ import annotations

import marshal
import os
import sys
from _socket import CMSG_SPACE, MSG_NOSIGNAL, SCM_RIGHTS, SOL_SOCKET, socket

TYPE_CHECKING = False  # `typing` has it too, and costs more than the rest of this file
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Message: TypeAlias = dict[str, Any]

_HEADER = 5
_CHUNK = 1 << 16
_MOST_DESCRIPTORS = 16
_DESCRIPTOR_SIZE = 4


def frame(message: Message, descriptors: tuple[int, ...] = ()) -> bytes:
    """A message as it is sent."""
    body = marshal.dumps(message)
    return len(body).to_bytes(4, "big") + bytes([len(descriptors)]) + body


def send(sock: socket, message: Message, descriptors: tuple[int, ...] = ()) -> None:
    """Send a message on a blocking socket."""
    data = frame(message, descriptors)
    sent = send_some(sock, data, descriptors)
    if sent < len(data):
        sock.sendall(data[sent:], MSG_NOSIGNAL)


def send_some(sock: socket, data: bytes, descriptors: tuple[int, ...] = ()) -> int:
    """Send what the socket accepts now, descriptors included; the number of bytes sent."""
    packed = b"".join(number.to_bytes(4, sys.byteorder) for number in descriptors)
    rights = [(SOL_SOCKET, SCM_RIGHTS, packed)] if descriptors else []
    return sock.sendmsg([data], rights, MSG_NOSIGNAL)


class Inbox:
    """Reads messages from a socket."""

    def __init__(self, sock: socket) -> None:
        self._sock = sock
        self._bytes = bytearray()
        self._descriptors: list[int] = []

    def read(self) -> list[tuple[Message, list[int]]]:
        """Read once; the messages that are now complete. EOFError when the other end is closed."""
        try:
            data, rights, _, _ = self._sock.recvmsg(
                _CHUNK, CMSG_SPACE(_MOST_DESCRIPTORS * _DESCRIPTOR_SIZE)
            )
        except BlockingIOError:
            return []
        except ConnectionError:
            data, rights = b"", []
        for level, kind, packed in rights:
            if (level, kind) == (SOL_SOCKET, SCM_RIGHTS):
                self._take(_unpacked(packed))
        if not data:
            raise EOFError
        self._bytes += data
        return self._complete()

    def _take(self, descriptors: list[int]) -> None:
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        self._descriptors.extend(descriptors)

    def _complete(self) -> list[tuple[Message, list[int]]]:
        messages = []
        while len(self._bytes) >= _HEADER:
            end = _HEADER + int.from_bytes(self._bytes[:4], "big")
            if len(self._bytes) < end:
                break
            count = self._bytes[4]
            messages.append((marshal.loads(self._bytes[_HEADER:end]), self._descriptors[:count]))  # noqa: S302
            del self._bytes[:end], self._descriptors[:count]
        return messages


def _unpacked(packed: bytes) -> list[int]:
    whole = len(packed) - len(packed) % _DESCRIPTOR_SIZE
    return [
        int.from_bytes(packed[start : start + _DESCRIPTOR_SIZE], sys.byteorder)
        for start in range(0, whole, _DESCRIPTOR_SIZE)
    ]
