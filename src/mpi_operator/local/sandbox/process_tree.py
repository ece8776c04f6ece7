"""Who runs on this machine, and which of them belong together."""

from __future__ import annotations

import os

_PROC = "/proc"


def parents() -> dict[int, int]:
    """Every process with its parent, zombies left out."""
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
    """All processes below one, whoever started them."""
    everybody = parents()
    family = {root}
    grew = True
    while grew:
        children = {pid for pid, parent in everybody.items() if parent in family} - family
        family |= children
        grew = bool(children)
    return sorted(family - {root})


def has_in_environment(pid: int, mark: bytes) -> bool:
    """Whether a process was started with a variable, written `NAME=value`."""
    try:
        with open(f"{_PROC}/{pid}/environ", "rb") as file:
            return mark in file.read().split(b"\0")
    except OSError:
        return False
