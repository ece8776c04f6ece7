"""The TLS context of the server, whose certificate can be replaced while it serves.

New connections use the new certificate, open ones keep theirs. Use it only on the event loop that
serves: a handshake must not see a certificate with the key of another.
"""

import asyncio
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager


class LiveContext:
    """A server's context, and the certificate in it."""

    def __init__(self) -> None:
        self.context = _new_context()
        self.has_certificate = asyncio.Event()
        self._loaded = ("", "")

    def load(self, certificate: str, key: str) -> bool:
        """Serve this certificate from now on; false if it is served already.

        ssl.SSLError if the key does not belong to it: then the one before stays.
        """
        if (certificate, key) == self._loaded:
            return False
        _load(_new_context(), certificate, key)  # loading a bad pair would spoil the context
        _load(self.context, certificate, key)
        self._loaded = (certificate, key)
        self.has_certificate.set()
        return True


def _new_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _load(context: ssl.SSLContext, certificate: str, key: str) -> None:
    with _memory_file(certificate) as certificate_path, _memory_file(key) as key_path:
        context.load_cert_chain(certificate_path, key_path)


@contextmanager
def _memory_file(text: str) -> Iterator[str]:
    """The path of a file that exists only in memory: Python loads certificates from files only.

    The operator's container has no place to write, and a key should not be on a disk anyway.
    """
    descriptor = os.memfd_create("webhook", os.MFD_CLOEXEC)
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        yield f"/proc/self/fd/{descriptor}"
