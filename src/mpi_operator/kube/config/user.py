"""From a user of a kubeconfig to credentials."""

import time
from collections.abc import Callable

import msgspec

from .credentials import Credential, Credentials, Fixed, Reread
from .errors import ConfigError
from .exec_credentials import ExecCredentials
from .exec_plugin import ExecCluster, parse_plugin
from .headers import Headers, basic, bearer, bearer_file, impersonation
from .kubeconfig import Entry
from .kubeconfig_types import User
from .pem import pem
from .tls import ClientCertificate, parse_client_certificate


def credentials_of(
    entry: Entry[User],
    cluster: ExecCluster,
    *,
    clock: Callable[[], float] = time.monotonic,
    now: Callable[[], float] = time.time,
) -> Credentials:
    """What the user has, in kubectl's order: a plugin runs only when there is nothing else."""
    _check(entry)
    acting_as = _impersonation(entry)
    if cluster.server.startswith("http://"):
        # kubectl's rule: nothing secret goes over a wire that anybody can read.
        return Fixed(Credential(acting_as))
    if entry.value.exec and not _has_own(entry.value):
        return ExecCredentials(parse_plugin(entry, cluster), acting_as, now=now)
    entry = _with_readable_token(entry)

    def read() -> Credential:
        return Credential(_authorization(entry) + acting_as, _certificate(entry))

    return Reread(read, clock=clock) if _has_files(entry.value) else Fixed(read())


def _check(entry: Entry[User]) -> None:
    user = entry.value
    if user.auth_provider is not None:
        raise ConfigError(
            f"{entry.where}: auth-provider is no longer part of Kubernetes; "
            "use the exec plugin of your provider"
        )
    if (user.token or user.token_file) and (user.username or user.password):
        raise ConfigError(f"{entry.where}: has a token and a password; expected only one of them")


def _has_own(user: User) -> bool:
    secrets = (user.token, user.token_file, user.username, user.password)
    return any((*secrets, user.client_certificate, user.client_certificate_data))


def _has_files(user: User) -> bool:
    return bool(user.token_file or user.client_certificate or user.client_key)


def _with_readable_token(entry: Entry[User]) -> Entry[User]:
    """With both, the file is meant (it is the one that gets renewed) and the token is for need."""
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
    chain = pem(entry, "client-certificate", user.client_certificate_data, user.client_certificate)
    if chain is None:
        return None
    key = pem(entry, "client-key", user.client_key_data, user.client_key)
    if key is None:
        raise ConfigError(
            f"{entry.where}: has a client-certificate but no client-key; expected both"
        )
    return parse_client_certificate(chain, key, f"{entry.where}: client-certificate")


def _impersonation(entry: Entry[User]) -> Headers:
    user = entry.value
    extra = {key: values or [] for key, values in (user.as_user_extra or {}).items()}
    return impersonation(user.as_user, user.as_uid, user.as_groups or [], extra, entry.where)
