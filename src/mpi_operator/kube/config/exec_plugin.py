"""Exec plugins for credentials: which command to run, and what its answer means. No I/O.

The protocol is the API group client.authentication.k8s.io:
https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
"""

import sys
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

import msgspec

from mpi_operator.kube.errors import ConfigError

from .headers import Headers, bearer
from .kubeconfig import Entry
from .kubeconfig_types import Cluster, Exec, Hidden, InteractiveMode, User
from .tls import TLS, ClientCertificate, parse_client_certificate

_GROUP = "client.authentication.k8s.io"
_VERSIONS = (f"{_GROUP}/v1", f"{_GROUP}/v1beta1")
_EXTENSION = f"{_GROUP}/exec"


@dataclass(frozen=True)
class ExecCluster:
    """The cluster, as described to a plugin."""

    server: str
    tls: TLS
    proxy: str | None = field(default=None, repr=False)
    disable_compression: bool = False
    config: Any = field(default=None, repr=False)
    """The cluster's extension for plugins, passed on unchanged."""


@dataclass(frozen=True)
class ExecPlugin:
    """A command that returns credentials."""

    where: str
    api_version: str
    command: str
    # Not in the repr: people put passwords into arguments and variables.
    args: tuple[str, ...] = field(default=(), repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    interactive: bool = False
    install_hint: str = ""


@dataclass(frozen=True)
class Answer:
    """The credential that a plugin returned."""

    authorization: Headers = field(repr=False)
    certificate: ClientCertificate | None
    expires_at: float | None
    """Seconds since 1970."""


def exec_config(cluster: Cluster) -> Any:
    """The extension of a cluster entry that is meant for plugins."""
    extensions = cluster.extensions or ()
    return next((e.extension for e in extensions if e.name == _EXTENSION), None)


def parse_plugin(entry: Entry[User], cluster: ExecCluster) -> ExecPlugin:
    """The plugin of a user entry, with its arguments and environment."""
    config, where = entry.value.exec or Exec(), f"{entry.where}: exec"
    if not config.command:
        raise ConfigError(f"{where}: command is missing")
    if config.api_version not in _VERSIONS:
        raise ConfigError(
            f"{where}: apiVersion {config.api_version!r} is not supported; "
            f"expected {' or '.join(_VERSIONS)} (the plugin may need an update)"
        )
    interactive = _is_interactive(config, where)
    info = _exec_info(config, cluster, interactive, where)
    return ExecPlugin(
        where=where,
        api_version=config.api_version,
        # Like kubectl: search a bare name in PATH; `./name` is relative to the kubeconfig.
        command=str(entry.path(config.command)) if "/" in config.command else config.command,
        args=tuple(config.args or ()),
        environment=_environment(config, where) | {"KUBERNETES_EXEC_INFO": info},
        interactive=interactive,
        install_hint=printable(config.install_hint or ""),
    )


def parse_answer(plugin: ExecPlugin, output: bytes) -> Answer:
    """The credential in a plugin's output. Errors never quote the output."""
    credential = _decoded(plugin, output)
    status = credential.status or _Status()
    if not status.token and not status.client_certificate_data:
        raise ConfigError(f"{plugin.where}: the plugin returned neither a token nor a certificate")
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise ConfigError(
            f"{plugin.where}: the plugin returned a certificate or a key; expected both"
        )
    expires = status.expiration_timestamp
    return Answer(
        authorization=bearer(status.token, plugin.where) if status.token else (),
        certificate=_certificate(plugin, status),
        expires_at=expires.timestamp() if expires else None,
    )


def printable(text: str) -> str:
    """Text from outside without control characters, which could take over a terminal."""
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )


class _Status(Hidden, frozen=True, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class _ExecCredential(Hidden, frozen=True, rename="camel"):
    api_version: str | None = None
    kind: str | None = None
    status: _Status | None = None


_decode = msgspec.json.Decoder(_ExecCredential).decode


def _decoded(plugin: ExecPlugin, output: bytes) -> _ExecCredential:
    try:
        credential = _decode(output)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(
            f"{plugin.where}: the output of the plugin is not an ExecCredential: {error}"
        ) from None
    if (credential.api_version, credential.kind) != (plugin.api_version, "ExecCredential"):
        raise ConfigError(
            f"{plugin.where}: expected an ExecCredential of {plugin.api_version}, "
            f"the plugin returned {credential.kind!r} of {credential.api_version!r}; "
            "set the apiVersion in the kubeconfig to that of the plugin"
        )
    return credential


def _certificate(plugin: ExecPlugin, status: _Status) -> ClientCertificate | None:
    if not (status.client_certificate_data and status.client_key_data):
        return None
    return parse_client_certificate(
        status.client_certificate_data, status.client_key_data, plugin.where
    )


def _is_interactive(config: Exec, where: str) -> bool:
    mode = config.interactive_mode
    if mode is None and config.api_version == _VERSIONS[0]:
        raise ConfigError(
            f"{where}: interactiveMode is missing; expected {', '.join(InteractiveMode)}"
        )
    has_terminal = sys.stdin is not None and sys.stdin.isatty()
    if mode is InteractiveMode.ALWAYS and not has_terminal:
        raise ConfigError(f"{where}: the plugin needs a terminal to prompt, and there is none")
    return has_terminal and mode is not InteractiveMode.NEVER


def _environment(config: Exec, where: str) -> dict[str, str]:
    variables = {variable.name or "": variable.value or "" for variable in config.env or ()}
    for name in variables:
        if not name or "=" in name or not name.isprintable():
            raise ConfigError(
                f"{where}: env has the name {name!r}; expected the name of a variable"
            )
    return variables


def _exec_info(config: Exec, cluster: ExecCluster, interactive: bool, where: str) -> str:
    """The value of KUBERNETES_EXEC_INFO, which describes us to the plugin."""
    spec: dict[str, Any] = {"interactive": interactive}
    if config.provide_cluster_info:
        spec["cluster"] = _cluster_info(cluster)
    info = {"apiVersion": config.api_version, "kind": "ExecCredential", "spec": spec}
    try:
        return msgspec.json.encode(info).decode()
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        # A ring of YAML aliases, a binary value, half a Unicode character.
        raise ConfigError(
            f"{where}: the cluster's extension {_EXTENSION} cannot be written as JSON"
        ) from None


def _cluster_info(cluster: ExecCluster) -> dict[str, Any]:
    fields = {
        "server": cluster.server,
        "tls-server-name": cluster.tls.server_name,
        "insecure-skip-tls-verify": cluster.tls.insecure,
        "certificate-authority-data": b64encode((cluster.tls.ca or "").encode()).decode(),
        "proxy-url": cluster.proxy,
        "disable-compression": cluster.disable_compression,
    }
    # Like Go: omit what is empty, except the config, which plugins look for.
    return {name: value for name, value in fields.items() if value} | {"config": cluster.config}
