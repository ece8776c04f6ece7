"""The status of a detached cluster, read from its directory and /proc."""

import json
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

from devcluster import runs
from devcluster.pki import Pki
from devcluster.process import Process
from devcluster.users import Users


def of(directory: Path) -> dict[str, Any]:
    """The status of one cluster as plain data."""
    saved = json.loads((directory / "control-plane.json").read_text())
    processes = {process.name: process for process in runs.recorded(directory)}
    users = Users(
        directory / "users",
        Pki(directory / "pki"),
        saved["address"],
        saved["ports"]["kube-apiserver"],
    )
    return {
        "name": directory.name,
        "url": users.url,
        "kubeconfig": str(users.kubeconfig()),
        "directory": str(directory),
        "components": [
            *(_component(processes[name], saved["ports"][name]) for name in saved["components"]),
            *(_component(processes[name], None) for name in sorted(processes) if _is_of_node(name)),
        ],
    }


def table(statuses: Iterable[dict[str, Any]]) -> str:
    """The statuses as text."""
    return "\n\n".join(_paragraph(status) for status in statuses)


def _is_of_node(name: str) -> bool:
    return name.startswith("node-") and not name.endswith(".init")


def _component(process: Process, port: int | None) -> dict[str, Any]:
    vitals = process.vitals()
    is_alive = vitals is not None and vitals.is_alive
    return {
        "name": process.name,
        "state": "running" if is_alive else "dead",
        "pid": process.pid,
        "port": port,
        "uptimeSeconds": round(vitals.uptime_seconds) if vitals and is_alive else None,
        "memoryBytes": _memory(process) if is_alive else None,
        "log": str(process.log),
    }


def _memory(process: Process) -> int:
    members = (member.vitals() for member in process.family())
    return sum(vitals.memory_bytes for vitals in members if vitals)


def _paragraph(status: dict[str, Any]) -> str:
    head = [
        f"{status['name']} at {status['url']}",
        f"  KUBECONFIG={status['kubeconfig']}",
        f"  {'COMPONENT':<24} {'STATE':<8} {'PID':>7} {'PORT':>6} {'UPTIME':>9} {'MEMORY':>8}",
    ]
    return "\n".join([*head, *(_row(component) for component in status["components"])])


def _row(component: dict[str, Any]) -> str:
    port, memory, seconds = (component[key] for key in ("port", "memoryBytes", "uptimeSeconds"))
    uptime = "-" if seconds is None else str(timedelta(seconds=seconds))
    return (
        f"  {component['name']:<24} {component['state']:<8} {component['pid']:>7}"
        f" {port or '-':>6} {uptime:>9} {'-' if memory is None else f'{memory >> 20} MiB':>8}"
    )
