"""Which workers are replaced, how often, and where that is counted.

A worker that failed, was evicted or vanished while its job runs gets a new pod of the same name.
Replacements are limited, so they are counted, and the counts survive a restart in an annotation of
the job's ConfigMap. A replacement is counted before it is carried out:

* A failed pod is counted with its uid, then deleted. After a restart the uid shows that it is
  counted already.
* A vanished pod left no uid. But it was running, so the ConfigMap lists its host; the write that
  takes the host off the list also counts it. The same holds for a pod that others delete: its host
  leaves the list as soon as the deletion begins.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

import msgspec

from mpi_operator.api import annotations, names
from mpi_operator.api.profiles import profile
from mpi_operator.api.types import MPIJob, Time

from . import pod_state
from .cached_types import Pod, StoredConfigMap, stored_note
from .events import JobEvent, warning
from .observed import Observed
from .problems import Problem, ProblemReason
from .retry_count import USUAL_LIMIT, restart_limit

REPLACED = "WorkerReplaced"  # the reason of the event

_FIRST_DELAY = timedelta(seconds=10)
_LONGEST_DELAY = timedelta(minutes=5)
_COUNT_EXPIRES_AFTER = timedelta(hours=1)


class Count(msgspec.Struct, frozen=True, array_like=True):
    """How often a worker was replaced, and the last time."""

    times: int
    uid: str  # of the pod that was lost last; "" where it had vanished
    at: Time
    how: str = ""  # it ended; short, because one annotation holds those of all workers
    before: Time | None = None  # the time before that


Counts: TypeAlias = Mapping[int, Count]

_decode = msgspec.json.Decoder(dict[int, Count]).decode
_encode = msgspec.json.Encoder().encode


def stored_counts(config_map: StoredConfigMap | None) -> Counts:
    """The stored counts; empty if the annotation is not valid."""
    return stored_note(config_map, annotations.WORKER_REPLACEMENTS, _decode, {})


def as_annotation(counts: Counts) -> dict[str, str]:
    """The counts as they are stored; no annotation where nothing was replaced."""
    if not counts:
        return {}
    return {annotations.WORKER_REPLACEMENTS: _encode(dict(sorted(counts.items()))).decode()}


@dataclass(frozen=True)
class Replacements:
    """What is to be done about workers that were lost."""

    counts: Counts  # to be stored first
    events: tuple[JobEvent, ...]  # about those that are counted now
    failed: tuple[Pod, ...]  # to be deleted once they are counted
    given_up: Mapping[int, Problem]
    not_before: Mapping[int, datetime]  # when missing workers may be created


def replacements(seen: Observed, now: datetime) -> Replacements:
    """Decide about every worker that is missing or has failed."""
    now = now.replace(microsecond=0)
    limit = _limit(seen.job)
    known = {
        index: count
        for index, count in stored_counts(seen.config_map).items()
        if count.at - now < _COUNT_EXPIRES_AFTER  # one of the future was not written by us
    }
    lost = dict(_lost(seen))
    counted = {
        index: _counted(known.get(index), pod, _uid(seen.workers.get(index)), limit, now)
        for index, pod in lost.items()
        if not _is_counted(known.get(index), pod)
    }
    new = {index: count for index, count in counted.items() if count}
    counts = {**_remembered(known, now), **new} if new else known
    missing = seen.worker_indexes - set(seen.workers)
    waiting = {index: counts[index] for index in missing if index in counts}
    given_up = [index for index, count in counted.items() if count is None]
    given_up += [
        i for i, count in waiting.items() if count.times > limit and _is_recent(count, now)
    ]
    return Replacements(
        counts=counts,
        events=tuple(
            _replaced(seen.job, index, seen.workers.get(index), count, limit)
            for index, count in counted.items()
            if count and count.times <= limit
        ),
        failed=tuple(pod for index, pod in lost.items() if pod and index not in given_up),
        given_up={i: _given_up(seen.job, i, lost.get(i), limit) for i in given_up},
        not_before={index: count.at + _delay(count.times) for index, count in waiting.items()},
    )


def _remembered(known: Counts, now: datetime) -> Counts:
    """The counts that still matter. An annotation has room for some thousands, and no more.

    The others are dropped with the next write: nothing is written for them alone.
    """
    return {index: count for index, count in known.items() if _is_recent(count, now)}


def _is_counted(count: Count | None, pod: Pod | None) -> bool:
    """Whether a failed pod was counted already and only not deleted yet."""
    return pod is not None and count is not None and count.uid == pod.metadata.uid


def _uid(pod: Pod | None) -> str:
    return pod.metadata.uid if pod is not None else ""


def _counted(
    count: Count | None, failed: Pod | None, uid: str, limit: int, now: datetime
) -> Count | None:
    """The next count of a lost worker; None for a failed pod that is kept: its limit is reached.

    A vanished pod is counted past the limit: when its host has left the list, only the count tells
    it from one that was never created.
    """
    known = count if count is not None and _is_recent(count, now) else None
    times, before = (known.times, known.at) if known else (0, None)
    if failed is not None:
        how = pod_state.briefly(failed)
        return Count(times + 1, uid, now, how, before) if times < limit else None
    return Count(times + 1, uid, now, before=before)


def _is_recent(count: Count, now: datetime) -> bool:
    """Whether a count still matters: an old loss says nothing about the present."""
    return now - count.at < _COUNT_EXPIRES_AFTER


def _lost(seen: Observed) -> Iterator[tuple[int, Pod | None]]:
    for index, pod in sorted(seen.workers.items()):
        if pod_state.is_failed(pod):
            yield index, pod
    for index in sorted(seen.listed_hosts):
        left = seen.workers.get(index)
        if index in seen.worker_indexes and (left is None or pod_state.is_terminating(left)):
            yield index, None


def _limit(job: MPIJob) -> int:
    chosen = annotations.number(job.metadata.annotations, annotations.MAX_WORKER_REPLACEMENTS)
    if chosen is not None:
        return chosen
    limit = restart_limit(job)  # as often as a launcher
    if profile(job).failed_worker_fails_job:
        # Those that are replaced were mostly deleted, which says nothing against the job.
        return limit or USUAL_LIMIT
    return limit


def _delay(times: int) -> timedelta:
    """The first replacement comes at once, further ones later and later."""
    return (
        min(_FIRST_DELAY * 2 ** min(times - 2, 10), _LONGEST_DELAY) if times > 1 else timedelta(0)
    )


def _replaced(job: MPIJob, index: int, pod: Pod | None, count: Count, limit: int) -> JobEvent:
    name = names.worker(job, index)
    how = pod_state.how_it_was_lost(pod)
    # That may take forever: the pod of a lost node stays.
    is_leaving = pod is not None and pod_state.is_terminating(pod)
    verb = "will be replaced once it is gone" if is_leaving else "is being replaced"
    return warning(REPLACED, f"Worker {name} {verb} ({count.times} of {limit}): {how}")


def _given_up(job: MPIJob, index: int, pod: Pod | None, limit: int) -> Problem:
    reason = ProblemReason.WORKER_FAILED
    if pod is not None and pod_state.is_evicted(pod):
        reason = ProblemReason.WORKER_EVICTED
    name = names.worker(job, index)
    message = (
        f"Worker {name} reached its replacement limit ({limit}): {pod_state.how_it_was_lost(pod)}"
    )
    return Problem(reason, message, is_fatal=True)
