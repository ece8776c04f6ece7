"""The network of a cluster: one bridge on this host, and a link from it to every node.

    host      bridge mpik<slot> with 10.x.0.1: API server and DNS server listen here
    node i    eth0 with 10.x.0.1<i>, a link to the bridge, pods behind it in 10.x.<16 (i + 1)>.0/20
    routes    to the pods of a node through its address, on the host and on every other node

Nothing of the host is changed but this bridge and its routes, so pods reach each other, the host
and nothing beyond it. The links die with the nodes' namespaces; only the bridge must be removed.
"""

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

from devcluster import slots

MAX_NODES = 15


@dataclass(frozen=True)
class Network:
    """The names and addresses of one cluster, all derived from its slot."""

    slot: int

    @property
    def bridge(self) -> str:
        return f"mpik{self.slot}"

    @property
    def host_address(self) -> str:
        return self._address(1)

    @property
    def range(self) -> str:
        return str(slots.address_range(self.slot))

    def node_address(self, node: int) -> str:
        return self._address(10 + node)

    def pod_range(self, node: int) -> str:
        first = slots.address_range(self.slot).network_address + ((node + 1) << 12)
        return f"{first}/20"

    def link(self, node: int) -> str:
        """The host's end of the link to a node."""
        return f"{self.bridge}n{node}"

    @property
    def bridge_hardware_address(self) -> str:
        return f"02:6d:70:69:6b:{self.slot:02x}"

    def _address(self, number: int) -> str:
        return str(slots.address_range(self.slot).network_address + number)


def create(network: Network) -> None:
    """The bridge, with the host's address on it.

    Without a hardware address of its own, a bridge has the lowest one of its links. When that link
    dies with its node, the other nodes would send to the old address for 15s and more.
    """
    _ip(
        f"link add {network.bridge} address {network.bridge_hardware_address} type bridge",
        f"address add {network.host_address}/20 dev {network.bridge}",
        f"link set {network.bridge} up",
    )


def attach(network: Network, node: int, pid: int, *, nodes: int) -> None:
    """Connect the network namespace of a process, which becomes this node's, to the bridge."""
    link = network.link(node)
    _ip(
        f"link add {link} type veth peer name eth0 netns {pid}",
        f"link set {link} master {network.bridge} up",
    )
    _ip(
        f"address add {network.node_address(node)}/20 dev eth0",
        "link set eth0 up",
        f"route add default via {network.host_address}",
        *(_route(network, other) for other in range(nodes) if other != node),
        namespace_of=pid,
    )
    _ip(_route(network, node))


def cut(network: Network, node: int) -> None:
    """Take the link down: packets get lost without an error."""
    _ip(f"link set {network.link(node)} down")


def join(network: Network, node: int) -> None:
    """Bring the link up again."""
    _ip(f"link set {network.link(node)} up")


def exists(network: Network) -> bool:
    """Whether the bridge is there."""
    return network.bridge in _links()


def remove(slot: int) -> None:
    """Delete what is left of a cluster's network."""
    bridge = Network(slot).bridge
    for name in _links():
        if name == bridge or name.startswith(f"{bridge}n"):
            # May fail: a link disappears with the namespace at its other end.
            subprocess.run(["ip", "link", "delete", name], stderr=subprocess.DEVNULL)


def _links() -> list[str]:
    listed = subprocess.run(["ip", "-br", "link"], check=True, capture_output=True, text=True)
    return [line.split()[0].split("@")[0] for line in listed.stdout.splitlines()]


def _route(network: Network, node: int) -> str:
    return f"route replace {network.pod_range(node)} via {network.node_address(node)}"


def _ip(*commands: str, namespace_of: int | None = None) -> None:
    prefix: Iterable[str] = ()
    if namespace_of is not None:
        prefix = ("nsenter", f"--net=/proc/{namespace_of}/ns/net")
    done = subprocess.run(
        [*prefix, "ip", "-batch", "-"],
        input="\n".join(commands),
        capture_output=True,
        text=True,
        timeout=30,
    )
    if done.returncode != 0:
        listed = "; ".join(commands)
        raise OSError(f"`ip {listed}` failed: {done.stderr.strip()}")
