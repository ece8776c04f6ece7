"""The fields of a kubeconfig file that we use, with their types.

Everything is optional and may be null, as in kubectl; unknown fields are ignored.
https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/
"""

from enum import StrEnum
from typing import Any

import msgspec


class Hidden(msgspec.Struct, frozen=True):
    """A struct that never prints its fields, because some of them are secret."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Rich tracebacks print locals, and call this instead of `__repr__`."""
        return []


class NamedExtension(Hidden, frozen=True):
    name: str | None = None
    extension: Any = None


class Cluster(Hidden, frozen=True, rename="kebab"):
    server: str | None = None
    tls_server_name: str | None = None
    insecure_skip_tls_verify: bool | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    proxy_url: str | None = None
    disable_compression: bool | None = None
    extensions: list[NamedExtension] | None = None


class EnvVar(Hidden, frozen=True):
    name: str | None = None
    value: str | None = None


class InteractiveMode(StrEnum):
    """Whether a plugin may prompt at the terminal."""

    NEVER = "Never"
    IF_AVAILABLE = "IfAvailable"
    ALWAYS = "Always"


class Exec(Hidden, frozen=True, rename="camel"):
    api_version: str | None = None
    command: str | None = None
    args: list[str] | None = None
    env: list[EnvVar] | None = None
    install_hint: str | None = None
    provide_cluster_info: bool | None = None
    interactive_mode: InteractiveMode | None = None


class User(Hidden, frozen=True, rename="kebab"):
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    username: str | None = None
    password: str | None = None
    as_user: str | None = msgspec.field(default=None, name="as")
    as_uid: str | None = None
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str] | None] | None = None
    auth_provider: Any = None
    exec: Exec | None = None


class Context(Hidden, frozen=True):
    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None


class NamedCluster(Hidden, frozen=True):
    name: str | None = None
    cluster: Cluster | None = None


class NamedUser(Hidden, frozen=True):
    name: str | None = None
    user: User | None = None


class NamedContext(Hidden, frozen=True):
    name: str | None = None
    context: Context | None = None


class Document(Hidden, frozen=True, rename="kebab"):
    """One file."""

    api_version: str | None = msgspec.field(default=None, name="apiVersion")
    kind: str | None = None
    current_context: str | None = None
    clusters: list[NamedCluster] | None = None
    users: list[NamedUser] | None = None
    contexts: list[NamedContext] | None = None
