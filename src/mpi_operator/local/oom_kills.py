"""How many processes of this machine the kernel has killed because memory ran out.

It counts those of every program and every cgroup together. What it killed is in its own log, which
needs root.
"""

from pathlib import Path

_COUNTERS = Path("/proc/vmstat")
_NAME = "oom_kill "


def count(counters: Path = _COUNTERS) -> int | None:
    """The number since the machine was started; None if the kernel does not say."""
    try:
        lines = counters.read_text().splitlines()
    except OSError:
        return None
    return next((int(line[len(_NAME) :]) for line in lines if line.startswith(_NAME)), None)
