"""When the list of running hosts is written: not once per pod, but when it has settled.

At once when every host runs or when one left, else after a quiet second, five seconds at most.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from .observed import Observed

_QUIET = timedelta(seconds=1)
_LONGEST = timedelta(seconds=5)


@dataclass(frozen=True)
class HostList:
    """The hosts that the ConfigMap should list now, and when those may be others."""

    hosts: frozenset[int]
    requeue_after: timedelta | None = None


def list_hosts(seen: Observed, now: datetime) -> HostList:
    running, listed = seen.running_hosts, seen.listed_hosts
    if running == listed or seen.config_map is None or seen.are_workers_running or listed - running:
        return HostList(running)
    change = seen.state.host_change
    if change is None:
        return HostList(listed, _QUIET)
    settled = min(change.last + _QUIET, change.first + _LONGEST)
    return HostList(running) if now >= settled else HostList(listed, settled - now)
