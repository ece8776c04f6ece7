"""Free TCP ports on this machine.

Nobody can reserve a port for another program, so a port found free may be taken a moment later;
whoever uses one must be ready to try another. Choosing at random below the kernel's ephemeral
range makes that rare: no outgoing connection ever gets a source port there, which also means that
a server which is stopped for a while finds its port free when it comes back.

The dice are the machine's and not those of `random`, which whoever uses us may have seeded: two
processes with the same seed would always meet at the same port.
"""

import random
import socket
from pathlib import Path

_LOWEST, _HIGHEST = 20000, 29999  # the NodePorts of Kubernetes start at 30000
_dice = random.SystemRandom()


def free_port(address: str = "127.0.0.1") -> int:
    """A port that was free a moment ago."""
    candidates = range(_LOWEST, min(_HIGHEST, _ephemeral_start()))
    for port in _dice.sample(candidates, min(100, len(candidates))):
        if is_free(port, address):
            return port
    with socket.create_server((address, 0)) as server:
        return int(server.getsockname()[1])


def is_free(port: int, address: str = "127.0.0.1") -> bool:
    """Whether a server could listen there now."""
    try:
        socket.create_server((address, port)).close()
    except OSError:
        return False
    return True


def _ephemeral_start() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        return _HIGHEST
