"""Tells a running launcher about a changed list of hosts.

A node brings a changed ConfigMap into a running pod when it next looks at the pod: every minute or
so, and at once when the pod itself changes. So the operator changes an annotation of the launcher's
pod after it has written the list. `leaving_workers` has what follows for workers that leave.

The ConfigMap has the time of the last change, the launcher's pod that of the last announcement.
Both are stored, so a restarted operator announces what the one before did not.

Hosts that join the first list of a job are not announced: mpirun reads the hostfile, which has all
of them from the start, and most jobs should not pay for a write that they do not need. A launcher
whose command names the discovery script is notified.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from mpi_operator.api import annotations
from mpi_operator.api.main_container import launcher_command_line, main_container
from mpi_operator.api.types import MPIJob
from mpi_operator.build.config_map import DISCOVER_SCRIPT

from . import pod_state
from .actions import Action, Announce
from .cached_types import Pod, StoredConfigMap, moment
from .observed import Observed

_YEARS = range(2000, 9000)


@dataclass(frozen=True)
class Announcement:
    """What a changed list of hosts leads to."""

    changed: datetime | None  # the last time that matters to a launcher, to be stored first
    actions: tuple[Action, ...] = ()


def announce_hosts(seen: Observed, hosts: frozenset[int], now: datetime) -> Announcement:
    """Notify the launcher if the list changes to `hosts`."""
    changed = _last_change(seen, hosts, now)
    return Announcement(changed, tuple(_announcements(seen, changed, now)))


def _last_change(seen: Observed, hosts: frozenset[int], now: datetime) -> datetime | None:
    """When the list last changed in a way that a running launcher should know; None if never."""
    known = stored_change(seen.config_map)
    is_new = hosts != seen.listed_hosts or seen.worker_indexes != seen.stored_indexes
    if seen.config_map is None or not is_new or not seen.launcher_is_under_way:
        return known
    return now if known or not _is_first_list(seen, hosts) else None


def _is_first_list(seen: Observed, hosts: frozenset[int]) -> bool:
    """Whether hosts only join, of a job that has its first size, and no launcher waits for them."""
    is_first_size = seen.worker_indexes == seen.stored_indexes
    return is_first_size and hosts >= seen.listed_hosts and not _reads_script(seen.job)


def _reads_script(job: MPIJob) -> bool:
    variables = main_container(job, job.spec.launcher).get("env") or ()
    words = (launcher_command_line(job), *(each.get("value") or "" for each in variables))
    return any(DISCOVER_SCRIPT in str(word) for word in words)


def _announcements(seen: Observed, changed: datetime | None, now: datetime) -> Iterator[Action]:
    """Notify the launcher, unless it was notified since the last change."""
    for pod in running_launchers(seen):
        if changed is not None and not _is_notified(pod, changed):
            # Not before the change, even where the operator before had a clock that is ahead.
            at = max(now, changed).isoformat()
            yield Announce(pod.metadata.key, pod.metadata.uid, at)


def running_launchers(seen: Observed) -> list[Pod]:
    """The pods of the launcher that can be notified."""
    return [pod for pod in seen.launcher_pods if pod_state.is_running(pod)]


def _is_notified(pod: Pod, changed: datetime) -> bool:
    announced = announced_at(pod)
    return announced is not None and announced >= changed


def announced_at(pod: Pod) -> datetime | None:
    """When a launcher was last notified of a change."""
    return _time(pod.metadata.annotations, annotations.HOSTS_ANNOUNCED)


def stored_change(config_map: StoredConfigMap | None) -> datetime | None:
    """When the stored list last changed; None if that does not matter."""
    stored = config_map.metadata.annotations if config_map else {}
    return _time(stored, annotations.HOSTS_CHANGED)


def change_annotation(changed: datetime | None) -> dict[str, str]:
    """The time of the last change as it is stored."""
    return {annotations.HOSTS_CHANGED: changed.isoformat()} if changed else {}


def _time(notes: Mapping[str, str], name: str) -> datetime | None:
    """A time that can be computed with; None for anything else."""
    found = moment(notes.get(name))
    return found if found and found.tzinfo and found.year in _YEARS else None
