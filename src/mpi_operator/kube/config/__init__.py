"""Where the API server is, and which identity we present to it.

    kubeconfig files ─┐
                      ├─▶ Config: server, namespace, TLS, proxy, Credentials ─▶ the HTTP client
    service account  ─┘                                              │
                                     asked before every request ◀────┘  and again after a 401

`load` checks a `Config`, so mistakes show before the first request. `Credentials` hides what
changes later: tokens and certificates that rotate.
One `Config` belongs to one event loop at a time. No secret is in any repr, log line or error.
"""

from mpi_operator.kube.errors import ConfigError

from .config import Config, Credential, Credentials
from .in_cluster import in_cluster
from .load import from_kubeconfig, load
from .tls import TLS, ClientCertificate

__all__ = [
    "TLS",
    "ClientCertificate",
    "Config",
    "ConfigError",
    "Credential",
    "Credentials",
    "from_kubeconfig",
    "in_cluster",
    "load",
]
