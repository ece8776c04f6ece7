"""A network namespace of its own for a process, on a link that can be cut and healed.

    host   bridge with the first address ── veth ═══ veth with the second address   namespace

The host's address is on the bridge, so it stays reachable from the host while the link is down. A
cut is silent: neither end gets an answer or an error, and unsent bytes stay in the sender's kernel.
The addresses come from a private range and exist between these two ends only.
"""

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Namespace:
    """The far end of a link."""

    name: str
    host_address: str
    host_link: str

    def command(self, *argv: str) -> list[str]:
        """What runs a command in here. The caller's own file system and user."""
        return ["nsenter", f"--net=/var/run/netns/{self.name}", *argv]

    def cut(self) -> None:
        _ip("link", "set", self.host_link, "down")

    def heal(self) -> None:
        _ip("link", "set", self.host_link, "up")

    def unacknowledged(self) -> int:
        """Bytes that sockets in here have sent, or want to send, without an acknowledgement."""
        table = subprocess.run(
            self.command("cat", "/proc/net/tcp"), check=True, capture_output=True, text=True
        ).stdout
        queues = (line.split()[4] for line in table.splitlines()[1:])
        return sum(int(queue.split(":")[0], 16) for queue in queues)


def why_not() -> str:
    """Why this machine cannot have such a namespace; empty where it can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [tool for tool in ("ip", "nsenter") if shutil.which(tool) is None]
    return f"not on the PATH: {', '.join(missing)}" if missing else ""


@contextmanager
def linked() -> Iterator[Namespace]:
    """A namespace, linked to this host; everything is gone afterwards."""
    tag = secrets.token_hex(3)
    subnet = f"10.{secrets.randbelow(100) + 130}.{secrets.randbelow(256)}"
    bridge, ours, theirs = f"mpib{tag}", f"mpih{tag}", f"mpin{tag}"
    namespace = Namespace(f"mpi-{tag}", f"{subnet}.1", ours)
    with ExitStack() as stack:
        _ip("netns", "add", namespace.name)
        stack.callback(_ip, "netns", "delete", namespace.name)
        _ip("link", "add", bridge, "type", "bridge")
        stack.callback(_ip, "link", "delete", bridge)
        _ip("link", "add", ours, "type", "veth", "peer", "name", theirs, "netns", namespace.name)
        stack.callback(_ip, "link", "delete", ours)
        _ip("link", "set", ours, "master", bridge)
        _ip("address", "add", f"{subnet}.1/24", "dev", bridge)
        _ip("-n", namespace.name, "address", "add", f"{subnet}.2/24", "dev", theirs)
        for link in (bridge, ours):
            _ip("link", "set", link, "up")
        for link in ("lo", theirs):
            _ip("-n", namespace.name, "link", "set", link, "up")
        yield namespace


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, timeout=30)
