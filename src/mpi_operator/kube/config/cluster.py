"""From a cluster of a kubeconfig to an address and a way to trust it."""

from collections.abc import Mapping

from .errors import ConfigError
from .kubeconfig import Entry
from .kubeconfig_types import Cluster
from .pem import pem
from .proxy import parse_proxy, proxy_from_environment
from .server import parse_server
from .tls import TLS, parse_ca


def server_of(entry: Entry[Cluster]) -> str:
    """The address."""
    if not entry.value.server:
        raise ConfigError(f"{entry.where}: server is missing; expected https://HOST[:PORT]")
    return parse_server(entry.value.server, f"{entry.where}: server")


def tls_of(entry: Entry[Cluster]) -> TLS:
    """How to recognise the server. A bundle and "trust anybody" contradict each other."""
    cluster, name = entry.value, "certificate-authority"
    insecure = bool(cluster.insecure_skip_tls_verify)
    text = pem(entry, name, cluster.certificate_authority_data, cluster.certificate_authority)
    if insecure and text is not None:
        raise ConfigError(
            f"{entry.where}: has insecure-skip-tls-verify and a certificate-authority; remove one"
        )
    ca = None if text is None else parse_ca(text, f"{entry.where}: {name}")
    return TLS(ca, insecure, cluster.tls_server_name or None)


def proxy_of(entry: Entry[Cluster], server: str, environ: Mapping[str, str]) -> str | None:
    """The cluster's own proxy, or else the environment's."""
    if entry.value.proxy_url:
        return parse_proxy(entry.value.proxy_url, f"{entry.where}: proxy-url")
    return proxy_from_environment(server, environ)
