"""Removes the cgroups and the bridge of a cluster with nodes, which are named after its slot.

Everything else (processes, mounts, sockets, network devices) lives in namespaces that end with the
first process of a node.
"""

from pathlib import Path

from devcluster import cgroups, network, slots


def remove(directory: Path) -> None:
    """Remove what the run in this directory left, after its processes; then release its slot."""
    for slot in slots.of(directory):
        clear(slot)
        slots.release(slot)


def clear(slot: int) -> None:
    """Remove everything that is named after a slot."""
    cgroups.remove(slot)
    network.remove(slot)
