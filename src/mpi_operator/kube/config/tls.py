"""TLS: how to verify the server, and the client certificate that we present."""

import os
import re
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from mpi_operator.kube.errors import ConfigError

_CERTIFICATE = re.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


@dataclass(frozen=True)
class TLS:
    """How to verify the server."""

    ca: str | None = field(default=None, repr=False)
    """PEM certificates; None means the CAs that this machine trusts."""
    insecure: bool = False
    """Skip verification."""
    server_name: str | None = None
    """The name to verify, if it is not the one in the address."""


@dataclass(frozen=True)
class ClientCertificate:
    """A certificate chain and its key, in PEM."""

    chain: str = field(repr=False)
    key: str = field(repr=False)
    source: str = field(default="client certificate", compare=False)
    """The field it comes from, for error messages."""


def parse_ca(text: str, where: str) -> str:
    """The certificates in a bundle, without the comments (which ssl takes in ASCII only)."""
    ca = "\n".join(_CERTIFICATE.findall(text))
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=ca)
    except (ssl.SSLError, ValueError, TypeError):
        raise ConfigError(f"{where}: expected PEM certificates, found no valid one") from None
    return ca


def parse_client_certificate(chain: str, key: str, where: str) -> ClientCertificate:
    """The certificate, if it is readable and belongs to the key."""
    certificate = ClientCertificate(chain, key, where)
    _load_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate)
    return certificate


def ssl_context(tls: TLS, certificate: ClientCertificate | None) -> ssl.SSLContext:
    """A context that verifies as `tls` says and presents the certificate."""
    context = ssl.create_default_context(cadata=tls.ca)
    # Python 3.13 became strict about certificates by default. Many clusters' authorities have no
    # Authority Key Identifier, which kubectl and every Go client accept, so we do too.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    # Like Go, trust everything in the bundle: also an intermediate or the server's own certificate.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        _load_certificate(context, certificate)
    return context


def _load_certificate(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    """Load the certificate. `ssl` reads files only, so write a private temporary one."""
    try:
        # The directory is 0700 and goes away with the file, whatever happens.
        with tempfile.TemporaryDirectory(prefix="kube-") as directory:
            path = Path(directory, "client.pem")
            _write_private(path, f"{certificate.chain}\n{certificate.key}\n")
            context.load_cert_chain(path, password=_no_password)
    except ssl.SSLError as error:
        reason = error.reason or "not valid PEM"
        raise ConfigError(
            f"{certificate.source}: certificate and key cannot be used together ({reason}); "
            "expected PEM, and the key of this certificate"
        ) from None
    except _EncryptedKeyError:
        raise ConfigError(
            f"{certificate.source}: the key has a password; "
            "remove it with `openssl pkey -in KEY -out PLAIN`"
        ) from None
    except OSError as error:
        raise ConfigError(
            f"{certificate.source}: cannot write a temporary file: {error.strerror}; set TMPDIR"
        ) from None


class _EncryptedKeyError(Exception):
    """OpenSSL asks for a password."""


def _no_password() -> str:
    # Without this, OpenSSL asks on the terminal and waits.
    raise _EncryptedKeyError


def _write_private(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
