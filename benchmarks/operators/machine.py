"""Facts about the machine, without which numbers mean nothing."""

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from devcluster.binaries import TOOLS

_PACKAGES = ("aiohttp", "msgspec", "cryptography")
_PROGRAMS = ("kube-apiserver", "etcd", "kubeflow-mpi-operator", "kwok")


def facts() -> dict[str, Any]:
    """The hardware and the versions."""
    return {
        "processor": processor(Path("/proc/cpuinfo").read_text()),
        "cores": os.cpu_count(),
        "memory in GB": round(memory_bytes(Path("/proc/meminfo").read_text()) / 1e9),
        "kernel": platform.release(),
        "load when it began": os.getloadavg()[0],
        "Python": platform.python_version(),
        **{name: metadata.version(name) for name in _PACKAGES},
        **{name: TOOLS[name].version for name in _PROGRAMS},
        "commit": _commit(),
    }


def is_busy(found: dict[str, Any]) -> bool:
    """Whether other load makes times unreliable."""
    return bool(found["load when it began"] > found["cores"] / 2)


def processor(cpuinfo: str) -> str:
    """The model of the first core, if the architecture has one."""
    names = (line.partition(":")[2] for line in cpuinfo.splitlines() if "model name" in line)
    return next(names, platform.machine()).strip()


def memory_bytes(meminfo: str) -> int:
    """The total memory."""
    [total] = (line for line in meminfo.splitlines() if line.startswith("MemTotal:"))
    return int(total.split()[1]) * 1024


def _commit() -> str:
    """The commit of the checkout, with a + if there are changes."""
    try:
        known = subprocess.run(
            ["git", "describe", "--always", "--dirty=+"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
        )
    except OSError:
        return "unknown"
    return known.stdout.strip() or "unknown"
