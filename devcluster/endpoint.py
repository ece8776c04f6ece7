"""One HTTPS server, spoken to with the standard library: enough to ask whether it is ready."""

import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Answer:
    """An HTTP response."""

    status: int
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Endpoint:
    """A server, the CA that it is trusted by, and optionally a client certificate."""

    address: str
    port: int
    ca: Path
    certificate: Path | None = None
    key: Path | None = None

    def request(self, method: str, path: str, body: Any = None, timeout: float = 10.0) -> Answer:
        """Send one request with a JSON body and read the whole answer."""
        with closing(self._connection(timeout)) as connection:
            response = _send(connection, method, path, body)
            return Answer(response.status, response.read())

    def stream(self, path: str, timeout: float = 10.0) -> Iterator[Any]:
        """The JSON lines of a watch, until the server ends it or says nothing for `timeout`."""
        with closing(self._connection(timeout)) as connection:
            for line in _send(connection, "GET", path, None):
                yield json.loads(line)

    def _connection(self, timeout: float) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=str(self.ca))
        if self.certificate:
            context.load_cert_chain(self.certificate, self.key)
        return http.client.HTTPSConnection(
            self.address, self.port, timeout=timeout, context=context
        )


def _send(
    connection: http.client.HTTPSConnection, method: str, path: str, body: Any
) -> http.client.HTTPResponse:
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    return connection.getresponse()
