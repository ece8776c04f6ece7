"""When a process has come to rest: from then on it uses next to no CPU."""

import asyncio
import time
from collections.abc import Sequence
from itertools import pairwise

from benchmarks.operators import usage

WINDOW = 0.25
_BUSY = 0.08  # of one core; a process at rest renews a lease and answers probes
_REST = 3.0


async def seconds_until_quiet(pid: int, since: float, limit: float) -> float:
    """Seconds from `since` (monotonic) until the last moment that the process was busy."""
    readings = [(time.monotonic(), usage.of(pid).cpu_seconds)]
    while time.monotonic() - since < limit:
        await asyncio.sleep(WINDOW)
        readings.append((time.monotonic(), usage.of(pid).cpu_seconds))
        last = last_busy(readings)
        if readings[-1][0] - last >= _REST:
            return max(last - since, 0.0)
    raise TimeoutError(f"process {pid} was still busy after {limit:.0f} s")


def last_busy(readings: Sequence[tuple[float, float]]) -> float:
    """The end of the last window in which the process was busy; the first reading if never."""
    windows = list(pairwise(readings))
    for (before, used_before), (after, used_after) in reversed(windows):
        if used_after - used_before > _BUSY * (after - before):
            return after
    return readings[0][0]
