"""The undocumented parts of aiohttp that a client uses. A server's are in `webhook/connections`.

aiohttp makes and keeps the connections and parses the answers. Its session does much per request
that an API server does not need (cookies, redirects, forms, a task per body): a quarter of the CPU
time of a call. So calls go past the session, straight to the connections of its connector.

When aiohttp moves a part of either, `tests/unit/kube/test_aiohttp_adapter.py` names it.
"""

import asyncio
import ssl
from collections.abc import Mapping

import aiohttp
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError
from yarl import URL

NotHttp = HttpProcessingError  # what a server gets that is no request

# `make test-aiohttp` passes with the first release of each of these versions. Keep equal to the
# range in pyproject.toml.
VERSIONS = ("3.12", "3.13", "3.14")
RANGE = ">=3.12,<3.15"

# Everything that an exchange can raise, apart from OSError.
FAILURES = (aiohttp.ClientError, HttpProcessingError, TimeoutError)

# Code, headers, body.
Answer = tuple[int, Mapping[str, str], bytes]


class Destination:
    """Tells the connector which connections to use: those to this server with this TLS context."""

    def __init__(self, server: str, context: ssl.SSLContext, server_name: str | None) -> None:
        self.request = aiohttp.ClientRequest(
            "GET",
            URL(server),
            loop=asyncio.get_running_loop(),
            ssl=context,
            server_hostname=server_name,
        )

    @property
    def host(self) -> str:
        """The value of the header Host."""
        return str(self.request.headers["Host"])


async def connect(
    session: aiohttp.ClientSession, destination: Destination, timeout: aiohttp.ClientTimeout
) -> Connection:
    """An idle connection of the session, or a new one."""
    assert session.connector is not None
    try:
        return await session.connector.connect(destination.request, [], timeout)
    except TimeoutError as error:
        raise aiohttp.ConnectionTimeoutError("no connection in time") from error


async def exchange(connection: Connection, message: bytes, buffer_size: int) -> Answer:
    """Send a whole request, and read the whole answer."""
    protocol, transport = connection.protocol, connection.transport
    if protocol is None or transport is None or transport.is_closing():
        raise aiohttp.ClientConnectionResetError("the connection was closed")
    protocol.set_response_params(read_until_eof=True, read_bufsize=buffer_size)
    transport.write(message)
    while True:
        head, body = await protocol.read()
        if head.code >= 200:
            return head.code, head.headers, await body.read()


def abort(connection: Connection) -> None:
    """Close a connection at once: bytes that have not left yet must not leave."""
    if connection.transport is not None:
        connection.transport.abort()
    connection.close()


def cause(error: Exception) -> Exception:
    """The error below one of aiohttp's, whose own text shows the address of a TLS object.

    Before 3.14 an error about a certificate has no `os_error`.
    """
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return error.certificate_error
    return error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
