"""When the list of running hosts is written: not once per pod, but when it has settled.

At once when every host runs or when one left, else after a quiet second, five at most.
"""

from datetime import datetime, timedelta

from .observed import Observed

_QUIET = timedelta(seconds=1)
_LONGEST = timedelta(seconds=5)


def hosts_to_list(seen: Observed, now: datetime) -> tuple[frozenset[int], timedelta | None]:
    """The hosts that the ConfigMap should list now, and in how long that may be others."""
    running, listed = seen.running_hosts, seen.listed_hosts
    if running == listed or seen.config_map is None or seen.are_workers_running or listed - running:
        return running, None
    if seen.host_change is None:
        return listed, _QUIET
    settled = min(seen.host_change.last + _QUIET, seen.host_change.first + _LONGEST)
    return (running, None) if now >= settled else (listed, settled - now)
