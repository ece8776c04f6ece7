"""The configuration of a pod: its service account."""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from mpi_operator.kube.errors import ConfigError

from .address import parse_namespace, parse_server, proxy_from_environment
from .config import Config, Credential, FileCredentials
from .files import read_text
from .headers import bearer_file
from .tls import TLS, parse_ca

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_WHERE = "in-cluster configuration"
_VARIABLES = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")


def is_in_cluster(
    *, account: Path = SERVICE_ACCOUNT, environ: Mapping[str, str] = os.environ
) -> bool:
    """Whether this process runs in a pod with a service account."""
    return all(environ.get(name) for name in _VARIABLES) and Path(account, "token").is_file()


def in_cluster(
    *,
    account: Path = SERVICE_ACCOUNT,
    environ: Mapping[str, str] = os.environ,
    clock: Callable[[], float] = time.monotonic,
) -> Config:
    """The API server and the service account of the pod that we run in.

    We read the token again every minute, because the kubelet renews it. The CA certificate is read
    once: Kubernetes tells administrators to restart pods when they replace that.
    """
    token = Path(account, "token")
    server = _server(environ)
    ca = parse_ca(read_text(Path(account, "ca.crt"), _WHERE), f"{_WHERE}: {account}/ca.crt")
    return Config(
        server=server,
        namespace=_namespace(account, environ),
        tls=TLS(ca),
        credentials=FileCredentials(lambda: Credential(bearer_file(token, _WHERE)), clock=clock),
        proxy=proxy_from_environment(server, environ),
    )


def _server(environ: Mapping[str, str]) -> str:
    missing = [name for name in _VARIABLES if not environ.get(name)]
    if missing:
        raise ConfigError(
            f"{_WHERE}: {' and '.join(missing)} not set, so this is not a pod; use a kubeconfig"
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
