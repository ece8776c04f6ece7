"""The CPU and memory of a process, from the kernel."""

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """The CPU used since the process started, and its current memory."""

    cpu_seconds: float
    rss_bytes: int


class Gone(Exception):
    """The process has ended."""


def of(pid: int) -> Usage:
    """The usage of a process with all its threads, from /proc."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        raise Gone(f"Process {pid} has ended.") from None
    return Usage(cpu_seconds(stat), rss_bytes(status))


def wanted_cpu_seconds(pid: int) -> float:
    """The CPU that a process has used, or has waited for while others had it.

    On a busy machine only this tells a process that is idle from one that gets no CPU.
    """
    return of(pid).cpu_seconds + sum(map(_waited_seconds, Path(f"/proc/{pid}/task").glob("*")))


def _waited_seconds(task: Path) -> float:
    try:
        _, waited, _ = (task / "schedstat").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0  # the thread has ended
    return int(waited) / 1e9


def cpu_seconds(stat: str) -> float:
    """User and system time in a /proc/PID/stat."""
    # The name of the program comes second, in brackets, and may contain anything.
    fields = stat[stat.rindex(")") + 2 :].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def rss_bytes(status: str) -> int:
    """The resident set in a /proc/PID/status; a process that is ending has none."""
    for line in status.splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0
