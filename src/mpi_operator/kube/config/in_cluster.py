"""The identity that Kubernetes gives to every pod."""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from .config import Config
from .credentials import Credential, Reread
from .errors import ConfigError
from .files import read_text
from .headers import bearer_file
from .proxy import proxy_from_environment
from .server import parse_namespace, parse_server
from .tls import TLS, parse_ca

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_WHERE = "in-cluster configuration"
_VARIABLES = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")


def is_in_cluster(
    *, account: Path = SERVICE_ACCOUNT, environ: Mapping[str, str] = os.environ
) -> bool:
    """Are we a pod that has been given an identity?"""
    return all(environ.get(name) for name in _VARIABLES) and Path(account, "token").is_file()


def in_cluster(
    *,
    account: Path = SERVICE_ACCOUNT,
    environ: Mapping[str, str] = os.environ,
    clock: Callable[[], float] = time.monotonic,
) -> Config:
    """The server and the identity of the pod that we run in.

    The token is read again every minute, because the kubelet renews it. The authority's
    certificate is not: Kubernetes asks for a restart of the pods when that is replaced.
    """
    token = Path(account, "token")
    server = _server(environ)
    ca = parse_ca(read_text(Path(account, "ca.crt"), _WHERE), f"{_WHERE}: {account}/ca.crt")
    return Config(
        server=server,
        namespace=_namespace(account, environ),
        tls=TLS(ca),
        credentials=Reread(lambda: Credential(bearer_file(token, _WHERE)), clock=clock),
        proxy=proxy_from_environment(server, environ),
    )


def _server(environ: Mapping[str, str]) -> str:
    missing = [name for name in _VARIABLES if not environ.get(name)]
    if missing:
        raise ConfigError(
            f"{_WHERE}: {' and '.join(missing)} not set, so this is no pod; use a kubeconfig"
        )
    host, port = (environ[name] for name in _VARIABLES)
    address = f"[{host}]" if ":" in host else host
    return parse_server(f"https://{address}:{port}", f"{_WHERE}: {' and '.join(_VARIABLES)}")


def _namespace(account: Path, environ: Mapping[str, str]) -> str:
    """POD_NAMESPACE, else the account's own namespace, else "default", as in client-go."""
    if name := environ.get("POD_NAMESPACE"):
        return parse_namespace(name, f"{_WHERE}: POD_NAMESPACE")
    path = Path(account, "namespace")
    name = read_text(path, _WHERE).strip() if path.exists() else ""
    return parse_namespace(name or "default", f"{_WHERE}: {path}")
