"""A configuration: one API server, and one identity that may change over time."""

import logging
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from mpi_operator.kube.errors import ConfigError

from .headers import Headers
from .tls import TLS, ClientCertificate, ssl_context

logger = logging.getLogger(__name__)

# The kubelet renews a projected token when a fifth of its lifetime is left: 2 minutes or more.
REREAD_SECONDS = 60.0


@dataclass(frozen=True)
class Credential:
    """What to send with one request to prove who we are. Equal content means equal."""

    headers: Headers = field(default=(), repr=False)
    """`Authorization` and `Impersonate-*`: pairs, because `Impersonate-Group` may repeat."""
    certificate: ClientCertificate | None = None


class Credentials(Protocol):
    """Our identity, which may be renewed while we run."""

    async def current(self) -> Credential:
        """What to send now; cheap when nothing changed, so ask before every request."""

    async def refused(self, credential: Credential) -> bool:
        """Called when the server answered 401; True if there is another credential to try.

        ConfigError if renewing fails, because that explains more than the 401.
        """


@dataclass(frozen=True)
class Config:
    """One API server and one identity."""

    server: str
    """`https://host:port[/prefix]`, without a slash at the end; `http://` means no TLS."""
    namespace: str
    """The default for namespaced objects."""
    tls: TLS
    credentials: Credentials
    # Hidden, because a proxy's address may hold a password.
    proxy: str | None = field(default=None, repr=False)

    def ssl_context(self, certificate: ClientCertificate | None) -> ssl.SSLContext:
        """A context that trusts this server and presents this certificate.

        Making one costs milliseconds: keep it until `Credential.certificate` changes.
        `tls.server_name`, if set, must be passed with each connection.
        """
        return ssl_context(self.tls, certificate)


class FixedCredentials:
    """A credential that never changes."""

    def __init__(self, credential: Credential) -> None:
        self._credential = credential

    async def current(self) -> Credential:
        return self._credential

    async def refused(self, credential: Credential) -> bool:
        return credential != self._credential


class FileCredentials:
    """A credential in files that the kubelet, or another program, renews.

    The event loop reads them: they are small, local and read once a minute, which is cheaper than
    a thread. If reading fails later on, the last credential stays in use.
    """

    def __init__(
        self, read: Callable[[], Credential], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = read
        self._clock = clock
        self._credential = read()
        self._due = clock() + REREAD_SECONDS

    async def current(self) -> Credential:
        if self._clock() >= self._due:
            self._reread()
        return self._credential

    async def refused(self, credential: Credential) -> bool:
        if credential == self._credential:
            self._reread()
        return credential != self._credential

    def _reread(self) -> None:
        self._due = self._clock() + REREAD_SECONDS
        try:
            self._credential = self._read()
        except ConfigError as error:
            logger.warning(
                "Could not renew credentials, using the previous ones", extra={"error": str(error)}
            )
