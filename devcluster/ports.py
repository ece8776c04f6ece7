"""Free TCP ports on this machine.

A port cannot be reserved for another program, so a free one may be taken a moment later; callers
must be ready to try another. Choosing at random below the kernel's ephemeral range makes that rare:
no outgoing connection gets a source port there, so a server that is stopped for a while also finds
its port free when it comes back.

A port counts as free only if nothing listens there at any address. CoreDNS, when it does not get
the port of its readiness check, continues without one and reports nothing.

The random numbers come from the system, not from `random`, which the caller may have seeded: two
processes with the same seed would always choose the same port.
"""

import random
import socket
from pathlib import Path

_LOWEST, _HIGHEST = 20000, 29999  # the NodePorts of Kubernetes start at 30000
_random = random.SystemRandom()


def free_port() -> int:
    """A port that is free now, at every address of this machine."""
    candidates = range(_LOWEST, min(_HIGHEST, _ephemeral_start()))
    for port in _random.sample(candidates, min(100, len(candidates))):
        if is_free(port):
            return port
    with socket.create_server(("", 0)) as server:
        return int(server.getsockname()[1])


def is_free(port: int) -> bool:
    """Whether a server could listen there now, whichever address it chooses."""
    try:
        socket.create_server(("", port)).close()
    except OSError:
        return False
    return True


def _ephemeral_start() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        return _HIGHEST
