"""Slots: the numbers that keep clusters with nodes apart.

Links, address ranges and cgroups exist once per machine, whichever user a cluster belongs to, so a
cluster claims a number and derives all those names from it (`mpik3`, 10.234.0.0/16, …). A claim is
a file in /run with the run's directory. When that directory is gone the claim is void, and the next
cluster that claims the slot removes what is left of it.
"""

import ipaddress
import json
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from devcluster import locks

DIRECTORY = Path("/run/mpi-operator/slots")
COUNT = 24
_FIRST_RANGE = 231


class NoSlot(Exception):
    """All slots are taken."""


def claim(directory: Path, clear: Callable[[int], None]) -> int:
    """Claim a slot for the run in this directory; `clear` removes what a void claim left behind."""
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    with locks.held(DIRECTORY / ".lock"):
        for slot in range(COUNT):
            if _is_free(slot, clear):
                _file(slot).write_text(str(directory))
                return slot
    raise NoSlot(
        f"All {COUNT} slots for clusters with nodes are taken. See which runs claim them in"
        f" {DIRECTORY}, and what else uses 10.{_FIRST_RANGE}.0.0/16 and above with `ip route`."
    )


def of(directory: Path) -> list[int]:
    """The slots that a run has claimed: one, or none if it has no nodes."""
    return [slot for slot in range(COUNT) if _claimant(slot) == directory]


def is_claimed(slot: int) -> bool:
    """Whether a run that still exists claims it."""
    claimant = _claimant(slot)
    return claimant is not None and claimant.exists()


def release(slot: int) -> None:
    """Give up a claim."""
    with locks.held(DIRECTORY / ".lock"):
        _file(slot).unlink(missing_ok=True)


def address_range(slot: int) -> ipaddress.IPv4Network:
    """All addresses of the nodes and pods of one cluster."""
    return ipaddress.IPv4Network(f"10.{_FIRST_RANGE + slot}.0.0/16")


def _is_free(slot: int, clear: Callable[[int], None]) -> bool:
    if is_claimed(slot):
        return False
    if _claimant(slot):
        clear(slot)
    return not any(address_range(slot).overlaps(used) for used in _used_ranges())


def _claimant(slot: int) -> Path | None:
    try:
        return Path(_file(slot).read_text())
    except FileNotFoundError:
        return None


def _file(slot: int) -> Path:
    return DIRECTORY / str(slot)


def _used_ranges() -> list[ipaddress.IPv4Network]:
    listed = subprocess.run(["ip", "-j", "-4", "route"], check=True, capture_output=True)
    used = []
    for route in json.loads(listed.stdout or "[]"):
        with suppress(ValueError):  # "default" is not an address range
            used.append(ipaddress.IPv4Network(route["dst"]))
    return used
