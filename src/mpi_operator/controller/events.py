"""Events about a job: recorded once the status they describe is stored."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from msgspec.structs import replace

from mpi_operator.api import conditions
from mpi_operator.api.types import Condition, ConditionType, MPIJobStatus
from mpi_operator.kube.events import Severity

from .problems import Problem, ProblemReason, lost_worker, most_important, shortened


@dataclass(frozen=True)
class JobEvent:
    """An event about a job."""

    severity: Severity
    reason: str
    message: str


def normal(reason: str, message: str) -> JobEvent:
    return JobEvent(Severity.NORMAL, reason, shortened(message))


def warning(reason: str, message: str) -> JobEvent:
    return JobEvent(Severity.WARNING, reason, shortened(message))


def became_true(old: MPIJobStatus, new: MPIJobStatus, kind: ConditionType) -> bool:
    return conditions.is_true(new.conditions, kind) and not conditions.is_true(old.conditions, kind)


def status_events(
    old: MPIJobStatus, new: MPIJobStatus, problems: Sequence[Problem]
) -> Iterator[JobEvent]:
    """An event for each condition that has changed, in the order of a job's life."""
    problem = most_important(problems)
    for kind in ConditionType:
        before = conditions.condition(old.conditions, kind)
        after = conditions.condition(new.conditions, kind)
        if after is None or _is_same(before, after):
            continue
        if kind in (ConditionType.RUNNING, ConditionType.RESTARTING):
            yield from _about_running(before, after, problem)
        elif kind is ConditionType.FAILED:
            yield warning(after.reason, after.message)
        elif after.is_true or kind is ConditionType.SUSPENDED:
            yield normal(after.reason, after.message)
            lost = lost_worker(problems) if kind is ConditionType.SUCCEEDED else None
            if lost is not None:
                yield warning(lost.reason, lost.message)


def _about_running(
    before: Condition | None, after: Condition, problem: Problem | None
) -> Iterator[JobEvent]:
    """That it runs or restarts, and its problem. Another condition reports that it stopped."""
    if after.is_true and not (before and before.is_true):
        yield normal(after.reason, after.message)
    if problem is not None and (after.is_true or after.reason == problem.reason):
        yield warning(problem.reason, _sentence(problem))


def _sentence(problem: Problem) -> str:
    if problem.reason == ProblemReason.INVALID_JOB:
        return f"Found validation errors: {problem.message}"
    return problem.message


def _is_same(before: Condition | None, after: Condition) -> bool:
    facts = attrgetter("status", "reason", "message")
    return before is not None and facts(before) == facts(after)


def can_wait(old: MPIJobStatus, new: MPIJobStatus) -> bool:
    """Whether a status differs only in how many pods run, or in the generation that it describes.

    A client that updates a job twice in a row would meet a conflict if we wrote in between.
    """
    unimportant = replace(
        old, replica_statuses=new.replica_statuses, observed_generation=new.observed_generation
    )
    return bool(old.conditions) and new == unimportant
