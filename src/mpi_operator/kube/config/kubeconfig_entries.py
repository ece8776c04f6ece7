"""From the entries of a kubeconfig to an address, a way to trust it, and credentials."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from mpi_operator.kube.errors import ConfigError

from .address import parse_proxy, parse_server, proxy_from_environment
from .config import Credential, Credentials, FileCredentials, FixedCredentials
from .exec_credentials import ExecCredentials
from .exec_plugin import ExecCluster, parse_plugin
from .files import decode_data, read_text
from .headers import Headers, basic, bearer, bearer_file, impersonation
from .kubeconfig import Entry
from .kubeconfig_types import Cluster, User
from .tls import TLS, ClientCertificate, parse_ca, parse_client_certificate


def server_of(entry: Entry[Cluster]) -> str:
    """The address of the API server."""
    if not entry.value.server:
        raise ConfigError(f"{entry.where}: server is missing; expected https://HOST[:PORT]")
    return parse_server(entry.value.server, f"{entry.where}: server")


def tls_of(entry: Entry[Cluster]) -> TLS:
    """How to verify the server. A CA bundle and skipping verification contradict each other."""
    cluster, name = entry.value, "certificate-authority"
    insecure = bool(cluster.insecure_skip_tls_verify)
    text = _pem(entry, name, cluster.certificate_authority_data, cluster.certificate_authority)
    if insecure and text is not None:
        raise ConfigError(
            f"{entry.where}: insecure-skip-tls-verify and certificate-authority "
            "exclude each other; remove one"
        )
    ca = None if text is None else parse_ca(text, f"{entry.where}: {name}")
    return TLS(ca, insecure, cluster.tls_server_name or None)


def proxy_of(entry: Entry[Cluster], server: str, environ: Mapping[str, str]) -> str | None:
    """The proxy of the cluster entry, or else that of the environment."""
    if entry.value.proxy_url:
        return parse_proxy(entry.value.proxy_url, f"{entry.where}: proxy-url")
    return proxy_from_environment(server, environ)


def credentials_of(
    entry: Entry[User],
    cluster: ExecCluster,
    *,
    clock: Callable[[], float] = time.monotonic,
    now: Callable[[], float] = time.time,
) -> Credentials:
    """The credentials of a user, in kubectl's order: a plugin runs only if there are no others."""
    _check(entry)
    acting_as = _impersonation(entry)
    if cluster.server.startswith("http://"):
        # kubectl's rule: send no secrets over an unencrypted connection.
        return FixedCredentials(Credential(acting_as))
    if entry.value.exec and not _has_own(entry.value):
        return ExecCredentials(parse_plugin(entry, cluster), acting_as, now=now)
    entry = _with_readable_token(entry)

    def read() -> Credential:
        return Credential(_authorization(entry) + acting_as, _certificate(entry))

    if _has_files(entry.value):
        return FileCredentials(read, clock=clock)
    return FixedCredentials(read())


def _check(entry: Entry[User]) -> None:
    user = entry.value
    if user.auth_provider is not None:
        raise ConfigError(
            f"{entry.where}: auth-provider is no longer part of Kubernetes; "
            "use the exec plugin of your provider"
        )
    if (user.token or user.token_file) and (user.username or user.password):
        raise ConfigError(f"{entry.where}: has a token and a password; remove one")


def _has_own(user: User) -> bool:
    secrets = (user.token, user.token_file, user.username, user.password)
    return any((*secrets, user.client_certificate, user.client_certificate_data))


def _has_files(user: User) -> bool:
    return bool(user.token_file or user.client_certificate or user.client_key)


def _with_readable_token(entry: Entry[User]) -> Entry[User]:
    """Prefer the token file, which gets renewed, and fall back to the token if it is missing."""
    user = entry.value
    if not (user.token and user.token_file) or entry.path(user.token_file).is_file():
        return entry
    alone = msgspec.structs.replace(user, token_file=None)
    return Entry(entry.kind, entry.name, alone, entry.file)


def _authorization(entry: Entry[User]) -> Headers:
    user = entry.value
    if user.token_file:
        return bearer_file(entry.path(user.token_file), f"{entry.where}: tokenFile")
    if user.token:
        return bearer(user.token, entry.where)
    if user.username or user.password:
        return basic(user.username or "", user.password or "", entry.where)
    return ()


def _certificate(entry: Entry[User]) -> ClientCertificate | None:
    user = entry.value
    chain = _pem(entry, "client-certificate", user.client_certificate_data, user.client_certificate)
    if chain is None:
        return None
    key = _pem(entry, "client-key", user.client_key_data, user.client_key)
    if key is None:
        raise ConfigError(
            f"{entry.where}: has a client-certificate but no client-key; expected both"
        )
    return parse_client_certificate(chain, key, f"{entry.where}: client-certificate")


def _impersonation(entry: Entry[User]) -> Headers:
    user = entry.value
    extra = {key: values or [] for key, values in (user.as_user_extra or {}).items()}
    return impersonation(user.as_user, user.as_uid, user.as_groups or [], extra, entry.where)


def _pem(entry: Entry[Any], name: str, data: str | None, path: str | None) -> str | None:
    """The PEM text of a field, from its data or its file. Data wins, as the format says."""
    if data:
        return decode_data(data, f"{entry.where}: {name}-data")
    return read_text(entry.path(path), f"{entry.where}: {name}") if path else None
