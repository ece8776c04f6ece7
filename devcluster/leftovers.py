"""What a cluster with nodes leaves on the machine besides processes and files, and its removal.

The processes, mounts, sockets and network devices of a node live in namespaces that end with its
first process. What remains are the cgroups and the bridge, both named after the slot.
"""

from pathlib import Path

from devcluster import cgroups, network, slots


def remove(directory: Path) -> None:
    """Remove what the run in this directory left, its processes being dead; then free its slot."""
    for slot in slots.of(directory):
        clear(slot)
        slots.release(slot)


def clear(slot: int) -> None:
    """Remove whatever is named after a slot."""
    cgroups.remove(slot)
    network.remove(slot)
