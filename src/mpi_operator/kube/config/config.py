"""Everything that a client needs to know before its first request."""

import ssl
from dataclasses import dataclass, field

from . import tls as _tls
from .credentials import Credentials
from .tls import TLS, ClientCertificate


@dataclass(frozen=True)
class Config:
    """One API server and one identity."""

    server: str
    """`https://host:port[/prefix]`, without a slash at the end; `http://` means no TLS."""
    namespace: str
    """Where namespaced objects go when nobody says otherwise."""
    tls: TLS
    credentials: Credentials
    # Hidden, because a proxy's address may hold a password.
    proxy: str | None = field(default=None, repr=False)

    def ssl_context(self, certificate: ClientCertificate | None) -> ssl.SSLContext:
        """A context that trusts this server and shows this certificate.

        Making one costs milliseconds: keep it until `Credential.certificate` changes.
        `tls.server_name`, where there is one, has to be given with each connection.
        """
        return _tls.ssl_context(self.tls, certificate)
