"""Where the API server is, and how we prove who we are.

    kubeconfig files ─┐
                      ├─▶ Config: server, namespace, TLS, proxy, Credentials ─▶ the HTTP client
    a pod's account  ─┘                                              │
                                     asked before every request ◀────┘  and told of every 401

A `Config` is checked when it is loaded, so that mistakes are found before the first request.
What changes later (tokens and certificates that rotate) hides behind `Credentials`.
One `Config` belongs to one event loop at a time. No secret is in any repr, log line or error.
"""

from .config import Config
from .credentials import Credential, Credentials
from .errors import ConfigError
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
