"""The host names and addresses of pods.

There is no DNS server: the names of all pods of a namespace are in a file that each of them has as
`/etc/hosts`. Pods come and go while others read it, so lines are only ever added, and a host keeps
its address for as long as the node runs.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

from mpi_operator.kube.resources import Key, Manifest

# On Linux all of 127.0.0.0/8 is loopback, so each pod has an address to listen on.
_NETWORK = "127.77"
_LOOPBACK = "127.0.0.1"


def names_of(pod: Manifest, cluster_domain: str) -> list[str]:
    """The names of a pod within its namespace, the full name first."""
    metadata, spec = pod["metadata"], pod["spec"]
    hostname = spec.get("hostname") or metadata["name"]
    names = [hostname]
    if subdomain := spec.get("subdomain"):
        short = f"{hostname}.{subdomain}"
        service = f"{short}.{metadata['namespace']}.svc"
        names = [f"{service}.{cluster_domain}", service, f"{short}.{metadata['namespace']}", short]
        names.append(hostname)
    return list(dict.fromkeys([*names, metadata["name"]]))


class PodDNS:
    """The host names of all pods."""

    def __init__(self, directory: Path, cluster_domain: str = "") -> None:
        self._directory = directory
        self._cluster_domain = cluster_domain or "cluster.local"
        self._addresses: dict[Key, str] = {}  # namespace and first name → address
        self._pods: dict[Key, Key] = {}  # namespace and any name → pod
        directory.mkdir(parents=True, exist_ok=True)

    def add(self, pod: Manifest) -> str:
        """Add the names of a pod; its address."""
        namespace = pod["metadata"]["namespace"]
        names = names_of(pod, self._cluster_domain)
        for name in names:
            self._pods[Key(namespace, name)] = Key(namespace, pod["metadata"]["name"])
        first = Key(namespace, names[0])
        if first not in self._addresses:
            self._addresses[first] = self._next_address()
            with self.file(namespace).open("a") as file:
                file.write(f"{self._addresses[first]} {' '.join(names)}\n")
        return self._addresses[first]

    def remove(self, pod: Key) -> None:
        """Remove the names of a pod."""
        self._pods = {name: found for name, found in self._pods.items() if found != pod}

    def find(self, namespace: str, host: str) -> Key | None:
        """The pod that has a host name."""
        return self._pods.get(Key(namespace, host.rstrip(".")))

    def known(self, namespace: str) -> list[str]:
        """One name for each pod of a namespace, for messages."""
        found = {pod: name for name, pod in self._pods.items() if name.namespace == namespace}
        return sorted(name.name for name in found.values())

    def file(self, namespace: str) -> Path:
        """The /etc/hosts of the pods of a namespace."""
        path = self._directory / namespace
        if not path.exists():
            path.write_text(_machine_hosts())
        return path

    def _next_address(self) -> str:
        if sys.platform != "linux":
            return _LOOPBACK
        high, low = divmod(len(self._addresses) + 1, 256)
        return f"{_NETWORK}.{high}.{low}"


def _machine_hosts() -> str:
    try:
        lines: Iterable[str] = Path("/etc/hosts").read_text().splitlines()
    except OSError:
        lines = ["127.0.0.1 localhost"]
    return "".join(f"{line}\n" for line in lines)
