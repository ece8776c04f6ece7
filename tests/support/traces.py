"""Where a cluster with nodes leaves its traces: processes, cgroups, links, routes, mounts, …"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from devcluster import slots


def of(directory: Path, slot: int) -> dict[str, list[str]]:
    """The traces of one run, by kind; a kind without any is left out."""
    found = {
        "directory": [str(directory)] if directory.exists() else [],
        "claim": [str(slot)] if slots.is_claimed(slot) else [],
        "processes": _processes(directory),
        "containers": _contained(slot),
        "cgroups": [str(path) for path in _cgroups(slot)],
        "links": _lines(f"mpik{slot}", "ip", "-br", "link"),
        "routes": _lines(f"{slots.address_range(slot).network_address}"[:-3], "ip", "route"),
        "mounts": _lines(str(directory), "cat", "/proc/self/mounts"),
        "namespaces": _lines(f"mpik{slot}", "ip", "netns"),
    }
    return {kind: traces for kind, traces in found.items() if traces}


def _processes(directory: Path) -> list[str]:
    """Those that name the run in their command line or environment; zombies do not."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            if str(directory).encode() in text:
                found.append(f"{entry.name} {(entry / 'comm').read_text().strip()}")
    return found


def _contained(slot: int) -> list[str]:
    pids: set[str] = set()
    for cgroup in _cgroups(slot):
        with suppress(OSError):
            pids.update((cgroup / "cgroup.procs").read_text().split())
    return sorted(pids)


def _cgroups(slot: int) -> Iterator[Path]:
    for tree in (Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").glob("*/")):
        # Some may vanish meanwhile, which is what the callers wait for.
        yield from (Path(directory) for directory, _, _ in os.walk(tree / f"mpik{slot}"))


def _lines(word: str, *command: str) -> list[str]:
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [line for line in printed.splitlines() if word in line]
