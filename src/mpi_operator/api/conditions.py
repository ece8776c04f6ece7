"""The conditions of a job, kept in an order that every known client understands.

Clients differ. Flyte takes the newest true condition and, of two of the same second, the first.
Others take the last of the list. Some call a job finished when `Succeeded` or `Failed` is present
at all. So a condition that becomes true is at least a second newer than those that are, and the
final one newer than all others; the condition that describes the job comes last; and there is never
a `Succeeded=False` or `Failed=False`.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TypeAlias

from msgspec.structs import replace

from .types import Condition, ConditionStatus, ConditionType

Conditions: TypeAlias = tuple[Condition, ...]

TERMINAL = frozenset({ConditionType.SUCCEEDED, ConditionType.FAILED})
# Only one of each pair can be true.
_OPPOSITES = {
    ConditionType.RUNNING: ConditionType.RESTARTING,
    ConditionType.RESTARTING: ConditionType.RUNNING,
}
_TICK = timedelta(seconds=1)  # times in a status are whole seconds
_NEVER = datetime.min.replace(tzinfo=UTC)


class Reason(StrEnum):
    """The reason of a condition. `Failed` may also have the reason of the launcher's failure."""

    CREATED = "MPIJobCreated"
    STARTING = "MPIJobStarting"
    RUNNING = "MPIJobRunning"
    RESTARTING = "MPIJobRestarting"
    SUSPENDED = "MPIJobSuspended"
    RESUMED = "MPIJobResumed"
    SUCCEEDED = "MPIJobSucceeded"
    FAILED = "MPIJobFailed"


def condition(conditions: Conditions, kind: ConditionType) -> Condition | None:
    """The condition of a type."""
    return next((each for each in conditions if each.type == kind), None)


def is_true(conditions: Conditions, kind: ConditionType) -> bool:
    """Whether a condition is present and true."""
    found = condition(conditions, kind)
    return found is not None and found.is_true


def true_since(conditions: Conditions, kind: ConditionType) -> datetime | None:
    """Since when a condition is true, at the earliest; None if it is not.

    Its time may be that of the next second, only to be newer than another one.
    """
    found = condition(conditions, kind)
    if found is None or not found.is_true or found.last_transition_time is None:
        return None
    earlier = found.last_transition_time - _TICK
    is_moved = any(each.is_true and _since(each) == earlier for each in conditions)
    return earlier if is_moved else found.last_transition_time


def is_finished(conditions: Conditions) -> bool:
    """Whether the job has succeeded or failed."""
    return any(is_true(conditions, kind) for kind in TERMINAL)


def describing(conditions: Conditions) -> Condition | None:
    """The condition that describes the job: the final one, else the one that became true last."""
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
    """The list with one condition set; the same list if that changes nothing.

    The conditions of a finished job no longer change.
    """
    if kind in TERMINAL and status is not ConditionStatus.TRUE:
        raise ValueError(f"some clients would take {kind}={status} for the end of the job")
    wanted = Condition(type=kind, status=status, reason=reason, message=message)
    if is_finished(conditions) or _is_same(condition(conditions, kind), wanted):
        return conditions
    others = _others(conditions, kind)
    return _in_order((*others, _stamped(wanted, condition(conditions, kind), others, now)))


def _is_same(known: Condition | None, wanted: Condition) -> bool:
    return known is not None and wanted == replace(
        known, last_update_time=None, last_transition_time=None
    )


def _others(conditions: Conditions, kind: ConditionType) -> Conditions:
    """The other conditions that stay once this one is set."""
    rest = (each for each in conditions if each.type not in (kind, _OPPOSITES.get(kind)))
    if kind not in TERMINAL:
        return tuple(rest)
    # Running keeps its times: tools compute durations from them.
    return tuple(
        replace(each, status=ConditionStatus.FALSE) if each.type == ConditionType.RUNNING else each
        for each in rest
        if each.type not in (*TERMINAL, ConditionType.RESTARTING)
    )


def _stamped(
    wanted: Condition, known: Condition | None, others: Iterable[Condition], now: datetime
) -> Condition:
    moment = now.astimezone(UTC).replace(microsecond=0)
    if known is not None and known.status is wanted.status:
        since = known.last_transition_time or moment
    elif wanted.is_true:
        older = [each for each in others if each.is_true or wanted.type in TERMINAL]
        since = max([moment, *(_since(each) + _TICK for each in older)])
    else:
        since = moment
    return replace(wanted, last_update_time=max(moment, since), last_transition_time=since)


def _since(condition: Condition) -> datetime:
    return condition.last_transition_time or _NEVER


def _in_order(conditions: Conditions) -> Conditions:
    """The list with the describing condition moved to the end."""
    last = describing(conditions)
    if last is None:
        return conditions
    return (*(each for each in conditions if each is not last), last)
