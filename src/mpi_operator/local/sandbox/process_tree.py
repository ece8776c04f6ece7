"""The processes of this machine: their parents, and the run and container they belong to."""

from __future__ import annotations

import os

# Every process of a run has these in its environment.
RUN_VARIABLE = "MPI_OPERATOR_RUN"
CONTAINER_VARIABLE = "MPI_OPERATOR_CONTAINER"

_PROC = "/proc"


def parents() -> dict[int, int]:
    """Every process with its parent, without zombies."""
    found = {}
    for name in os.listdir(_PROC):
        if name.isdecimal():
            try:
                with open(f"{_PROC}/{name}/stat", "rb") as file:
                    stat = file.read()
            except OSError:
                continue  # gone meanwhile
            # The program's name comes second, in brackets, and may contain anything.
            state, parent = stat[stat.rindex(b")") + 2 :].split(None, 2)[:2]
            if state not in (b"Z", b"X"):
                found[int(name)] = int(parent)
    return found


def descendants(root: int) -> list[int]:
    """All processes below one."""
    known = parents()
    found = {root}
    while children := {pid for pid, parent in known.items() if parent in found} - found:
        found |= children
    return sorted(found - {root})


def was_started_with(pid: int, name: str, value: str) -> bool:
    """Whether a process was started with this environment variable."""
    try:
        with open(f"{_PROC}/{pid}/environ", "rb") as file:
            return f"{name}={value}".encode() in file.read().split(b"\0")
    except OSError:
        return False
