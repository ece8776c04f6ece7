"""How long workers that leave still run: for a delay after the launcher was notified.

Each worker has a delay of its own, from the first announcement of a list without it: a list that
changes again meanwhile must not prolong it. But the launcher's pod has only the time of the last
announcement. So the write of the next list also stores the time of the one before, for the workers
that were leaving already. Nothing is written for that alone.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import TypeAlias

import msgspec

from mpi_operator.api import annotations, names
from mpi_operator.api.types import Time

from . import pod_state
from .cached_types import Pod, StoredConfigMap, stored_note
from .decision import ahead
from .host_announcement import announced_at, running_launchers, stored_change
from .observed import Observed

# A node takes a second to show the list, and an elastic launcher reads it every second.
_USUAL_DELAY = timedelta(seconds=5)
# Where a launcher's pod cannot be changed, workers do not wait forever.
_LONGEST_SILENCE = timedelta(seconds=30)

Departures: TypeAlias = Mapping[int, datetime]
"""When the launcher was notified that a worker leaves."""

_decode = msgspec.json.Decoder(dict[int, Time]).decode
_encode = msgspec.json.Encoder().encode


def stored_departures(config_map: StoredConfigMap | None) -> Departures:
    """The stored times; none if the annotation is not valid."""
    return stored_note(config_map, annotations.WORKERS_LEAVING, _decode, {})


def departures_annotation(departures: Departures) -> dict[str, str]:
    """The times as they are stored; no annotation where a job shrinks only once at a time."""
    if not departures:
        return {}
    return {annotations.WORKERS_LEAVING: _encode(dict(sorted(departures.items()))).decode()}


def earlier_departures(seen: Observed, changed: datetime | None) -> Departures:
    """Workers that left before the last change of the list, to be stored with it."""
    known, before = stored_departures(seen.config_map), stored_change(seen.config_map)
    if changed == before or before is None:
        return known
    notified = _notified_at(seen, before)
    return {
        index: min(known.get(index, notified), notified)
        for index, _ in _leaving(seen)
        if index not in seen.stored_indexes
    }


def remaining_times(
    seen: Observed, changed: datetime | None, departures: Departures, now: datetime
) -> Mapping[str, timedelta]:
    """How long surplus workers still run, by the uid of their pods; without those that need not."""
    if changed is None or not running_launchers(seen):
        return {}
    notified = _notified_at(seen, changed)
    remaining = (
        (pod, _remaining(seen, min(departures.get(index, notified), notified), now))
        for index, pod in _leaving(seen)
    )
    return {pod.metadata.uid: left for pod, left in remaining if left}


def _leaving(seen: Observed) -> Iterator[tuple[int, Pod]]:
    """The workers that still run though the job should not have them, with their numbers."""
    for pod in filter(pod_state.is_running, seen.surplus_workers):
        index = names.worker_index(seen.job, pod.metadata.name)
        if index is not None:
            yield index, pod


def _notified_at(seen: Observed, changed: datetime) -> datetime:
    """When the launcher was notified of a change, or is assumed to know it."""
    announced = (announced_at(pod) for pod in running_launchers(seen))
    notified = [each for each in announced if each and each >= changed]
    return max(notified, default=changed + _LONGEST_SILENCE)


def _remaining(seen: Observed, since: datetime, now: datetime) -> timedelta | None:
    chosen = annotations.scale_down_delay(seen.job.metadata.annotations)
    delay = _USUAL_DELAY if chosen is None else chosen
    wait = since + delay - now
    is_of_the_future = wait > delay + _LONGEST_SILENCE  # another clock was wrong
    return None if is_of_the_future else ahead(min(wait, delay))
