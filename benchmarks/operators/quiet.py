"""When a process became idle: from then on it wants almost no CPU."""

import asyncio
import time
from collections.abc import Sequence
from itertools import pairwise

from benchmarks.operators import usage

WINDOW = 0.25
_BUSY = 0.08  # of one core; an idle process renews a lease and answers probes
_REST = 3.0


async def seconds_until_quiet(pid: int, since: float, limit: float) -> float:
    """Seconds from `since` (monotonic) until the process was last busy."""
    measurements = [(time.monotonic(), usage.wanted_cpu_seconds(pid))]
    while time.monotonic() - since < limit:
        await asyncio.sleep(WINDOW)
        measurements.append((time.monotonic(), usage.wanted_cpu_seconds(pid)))
        last = last_busy(measurements)
        if measurements[-1][0] - last >= _REST:
            return max(last - since, 0.0)
    raise TimeoutError(f"process {pid} was still busy after {limit:.0f} s")


def last_busy(measurements: Sequence[tuple[float, float]]) -> float:
    """The end of the last busy window; the time of the first measurement if there is none."""
    windows = list(pairwise(measurements))
    for (before, used_before), (after, used_after) in reversed(windows):
        if used_after - used_before > _BUSY * (after - before):
            return after
    return measurements[0][0]
