"""The cgroups of a cluster: one tree per slot, below the root of every hierarchy there is.

Version 1 has a hierarchy per resource, version 2 one for all, and many machines have both. The
kubelet of a node keeps its pods below `/mpik<slot>/node-<i>` in each.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_REMOVAL_SECONDS = 15.0


def root(slot: int, node: int) -> str:
    """The path of a node's tree, the same in every hierarchy."""
    return f"/{_tree(slot)}/node-{node}"


def create(slot: int, node: int) -> None:
    """Make a node's tree in every hierarchy, ready to hold processes."""
    for hierarchy in _hierarchies():
        current = hierarchy
        for name in (_tree(slot), f"node-{node}"):
            _pass_controllers_on(current)
            current = current / name
            current.mkdir(exist_ok=True)
            _inherit_processors(current)


def remove(slot: int, node: int | None = None) -> None:
    """Kill every process in the trees of a slot, or of one of its nodes, and delete them."""
    deadline = time.monotonic() + _REMOVAL_SECONDS
    path = f"/{_tree(slot)}" if node is None else root(slot, node)
    trees = [Path(f"{hierarchy}{path}") for hierarchy in _hierarchies()]
    while remaining := [tree for tree in trees if tree.exists()]:
        for tree in remaining:
            _try_to_remove(tree)
        if time.monotonic() > deadline:
            raise OSError(f"Cannot remove {remaining[0]}: a process in it is still running.")
        time.sleep(0.02)


def _try_to_remove(tree: Path) -> None:
    for directory, _, _ in os.walk(tree, topdown=False):
        for pid in _processes(Path(directory)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(OSError):  # busy until the killed processes have ended
            Path(directory).rmdir()


def _processes(cgroup: Path) -> list[int]:
    try:
        pids = [int(line) for line in (cgroup / "cgroup.procs").read_text().split()]
    except OSError:  # it is gone, or has threads only
        return []
    return [pid for pid in pids if pid > 0]


def _tree(slot: int) -> str:
    return f"mpik{slot}"


def _hierarchies() -> Iterator[Path]:
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, target, kind, *_ = line.split()
        if kind in ("cgroup", "cgroup2"):
            yield Path(target)


def _pass_controllers_on(cgroup: Path) -> None:
    # Version 2: children have only the controllers that their parent delegates.
    with suppress(FileNotFoundError):
        controllers = (cgroup / "cgroup.controllers").read_text().split()
        for controller in controllers:
            with suppress(OSError):
                (cgroup / "cgroup.subtree_control").write_text(f"+{controller}")


def _inherit_processors(cgroup: Path) -> None:
    # Version 1: a new cpuset has no processors, and nothing can be started in it.
    for file in ("cpuset.cpus", "cpuset.mems"):
        with suppress(FileNotFoundError):
            inherited = (cgroup.parent / file).read_text().strip()
            if inherited and not (cgroup / file).read_text().strip():
                (cgroup / file).write_text(inherited)
