"""CoreDNS, without caching: a new pod can be resolved at once."""

from pathlib import Path

USER = "system:coredns"
# What its kubernetes plugin reads.
RULES = [
    {
        "apiGroups": [""],
        "resources": ["endpoints", "services", "pods", "namespaces"],
        "verbs": ["list", "watch"],
    },
    {
        "apiGroups": ["discovery.k8s.io"],
        "resources": ["endpointslices"],
        "verbs": ["list", "watch"],
    },
]


def corefile(*, address: str, domain: str, ready_port: int, kubeconfig: Path) -> str:
    """The configuration file."""
    return f"""\
.:53 {{
    bind {address}
    errors
    ready 127.0.0.1:{ready_port}
    kubernetes {domain} in-addr.arpa ip6.arpa {{
        kubeconfig {kubeconfig} devcluster
        ttl 0
    }}
}}
"""


def command(binary: Path, *, corefile: Path) -> list[str]:
    return [str(binary), "-conf", str(corefile)]
