"""The conditions of a job: how one is set, so that every known reader understands the list.

Readers differ. Flyte takes the newest true condition and, of two of the same second, the first.
Others take the last of the list. Some call a job finished when `Succeeded` or `Failed` is there at
all. So: the end of a job is at least a second newer than everything else, the condition that
describes the job comes last, and there is no `Succeeded=False` and no `Failed=False`.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TypeAlias

from msgspec.structs import replace

from .types import Condition, ConditionStatus, ConditionType

Conditions: TypeAlias = tuple[Condition, ...]

TERMINAL = frozenset({ConditionType.SUCCEEDED, ConditionType.FAILED})
# Only one of them can be the case.
_RIVALS = {
    ConditionType.RUNNING: ConditionType.RESTARTING,
    ConditionType.RESTARTING: ConditionType.RUNNING,
}
_TICK = timedelta(seconds=1)  # times in a status are whole seconds
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class Reason(StrEnum):
    """Why a condition is as it is. A failed launcher brings reasons of its own."""

    CREATED = "MPIJobCreated"
    STARTING = "MPIJobStarting"
    RUNNING = "MPIJobRunning"
    SUSPENDED = "MPIJobSuspended"
    RESUMED = "MPIJobResumed"
    SUCCEEDED = "MPIJobSucceeded"
    FAILED = "MPIJobFailed"


def condition(conditions: Conditions, kind: ConditionType) -> Condition | None:
    """The condition of a type."""
    return next((each for each in conditions if each.type == kind), None)


def is_true(conditions: Conditions, kind: ConditionType) -> bool:
    """Whether a condition is there and true."""
    found = condition(conditions, kind)
    return found is not None and found.is_true


def is_finished(conditions: Conditions) -> bool:
    """Whether the job has come to its end, good or bad."""
    return any(is_true(conditions, kind) for kind in TERMINAL)


def describing(conditions: Conditions) -> Condition | None:
    """The condition that tells most about the job: its end, else what became true last."""
    true = [each for each in conditions if each.is_true]
    # Of two of the same second the later one in the list: it was set last.
    return max(reversed(true), key=lambda each: (each.type in TERMINAL, _since(each)), default=None)


def with_condition(
    conditions: Conditions,
    kind: ConditionType,
    status: ConditionStatus,
    reason: str,
    message: str,
    *,
    now: datetime,
) -> Conditions:
    """The list after one condition was set; the same list if that changes nothing.

    A finished job keeps its conditions, whatever anybody still hears about it.
    """
    if kind in TERMINAL and status is not ConditionStatus.TRUE:
        raise ValueError(f"{kind}={status} would be taken for the end of the job by some readers")
    wanted = Condition(type=kind, status=status, reason=reason, message=message)
    if is_finished(conditions) or _says_the_same(condition(conditions, kind), wanted):
        return conditions
    others = _others(conditions, kind)
    return _in_order((*others, _stamped(wanted, condition(conditions, kind), others, now)))


def _says_the_same(known: Condition | None, wanted: Condition) -> bool:
    return known is not None and wanted == replace(
        known, last_update_time=None, last_transition_time=None
    )


def _others(conditions: Conditions, kind: ConditionType) -> Conditions:
    """The rest of the list, as it is once this condition holds."""
    rest = (each for each in conditions if each.type not in (kind, _RIVALS.get(kind)))
    if kind not in TERMINAL:
        return tuple(rest)
    # Its times stay: they say when the job ran, and tools compute durations from them.
    return tuple(
        replace(each, status=ConditionStatus.FALSE) if each.type == ConditionType.RUNNING else each
        for each in rest
        if each.type not in TERMINAL
    )


def _stamped(
    wanted: Condition, known: Condition | None, others: Iterable[Condition], now: datetime
) -> Condition:
    moment = now.astimezone(UTC).replace(microsecond=0)
    if known is not None and known.status is wanted.status:
        since = known.last_transition_time or moment
    elif wanted.type in TERMINAL:
        since = max([moment, *(_since(each) + _TICK for each in others)])
    else:
        since = moment
    return replace(wanted, last_update_time=max(moment, since), last_transition_time=since)


def _since(condition: Condition) -> datetime:
    return condition.last_transition_time or _LONG_AGO


def _in_order(conditions: Conditions) -> Conditions:
    """The same list with the describing condition at its end."""
    last = describing(conditions)
    if last is None:
        return conditions
    return (*(each for each in conditions if each is not last), last)
