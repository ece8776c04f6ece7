"""How the state of a job changes: by what is observed, and by what each step learned. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import takewhile
from typing import TypeAlias

from mpi_operator.kube.backoff import Backoff

from .actions import Action, Delete, target
from .execute import Outcome
from .job_state import HostChange, JobState, LogReading, Refusal
from .launcher_log import current_reading
from .launcher_status import latest_failure, restarts
from .observed import Observed
from .plan import Plan
from .publish import Published

Stages: TypeAlias = Sequence[Sequence[Action]]

_REFUSED = Backoff(base=2.0, cap=300.0)
# Errors that last so long are reported.
FAILING_FOR_LONG = timedelta(seconds=30)


def remember(state: JobState, seen: Observed, now: datetime) -> JobState:
    """The state after the job was observed."""
    has_pod = bool(seen.launcher_pods)
    lost = now if state.has_launcher_pod else state.launcher_pod_lost
    done_since = state.launcher_done_since or now
    return replace(
        state,
        host_change=_host_change(state.host_change, seen, now),
        has_launcher_pod=has_pod,
        launcher_pod_lost=None if has_pod else lost,
        launcher_done_since=done_since if seen.successful_launcher else None,
        log_reading=current_reading(state.log_reading, seen, now),
        last_failure=latest_failure(state, seen),
    )


def permitted_stages(plan: Plan, seen: Observed, now: datetime) -> Stages:
    """What of a plan is to be done now: nothing that was just refused or is deleted already."""
    deleted, refusal = seen.state.deleted, seen.state.refusal
    stages: Stages = plan.stages
    if refusal is not None and not _is_over(refusal, seen, now):
        stages = tuple(takewhile(lambda stage: not _is_refused(stage, refusal), stages))
    if not deleted:
        return stages
    left = (
        tuple(each for each in stage if not (isinstance(each, Delete) and each in deleted))
        for stage in stages
    )
    return tuple(stage for stage in left if stage)


def after_execution(
    seen: Observed, plan: Plan, outcome: Outcome, now: datetime, jitter: float
) -> JobState:
    """The state after a plan was carried out, as far as that went."""
    state = seen.state
    return replace(
        state,
        # The watch has confirmed a deletion that is no longer planned.
        deleted=state.deleted.intersection(plan.deletions) | outcome.deleted,
        keys_checked=now if outcome.has_keys else state.keys_checked,
        refusal=_next_refusal(seen, outcome, now, jitter),
    )


def after_publishing(state: JobState, seen: Observed, published: Published) -> JobState:
    """The state after the status was compared with the stored one, and written if it differed."""
    return replace(
        state,
        version=published.version or state.version,
        counts_changed=published.counts_changed,
        launcher_restarts=restarts(seen) if published.is_stored else state.launcher_restarts,
    )


def after_reading(state: JobState, reading: LogReading) -> JobState:
    """The state after the launcher's log was read, or that failed."""
    return replace(state, log_reading=reading)


def after_writes(state: JobState, *, is_stale: bool) -> JobState:
    """The state after writes that have shown whether the caches are behind."""
    return replace(state, stale_reconciles=state.stale_reconciles + 1 if is_stale else 0)


def after_success(state: JobState) -> JobState:
    """The state after a reconcile that ended without an error."""
    is_clean = state.failing_since is None and not state.is_failure_reported
    return state if is_clean else replace(state, failing_since=None, is_failure_reported=False)


def after_error(state: JobState, now: datetime) -> JobState:
    """The state after a reconcile that ended with an error: reported once, if it lasts."""
    since = state.failing_since or now
    is_reported = state.is_failure_reported or now - since >= FAILING_FOR_LONG
    return replace(state, failing_since=since, is_failure_reported=is_reported)


def _host_change(known: HostChange | None, seen: Observed, now: datetime) -> HostChange | None:
    """Since when, and until when last, hosts came and went that are not on the list."""
    running, listed = seen.running_hosts, seen.listed_hosts
    if running == listed:
        return None
    if known is None or known.listed != listed:
        return HostChange(now, now, running, listed)
    return known if known.running == running else replace(known, last=now, running=running)


def _next_refusal(seen: Observed, outcome: Outcome, now: datetime, jitter: float) -> Refusal | None:
    known = seen.state.refusal
    if known is not None and not _is_over(known, seen, now):
        # What was refused meanwhile is asked for again at the same time.
        return replace(
            known,
            problems=(*outcome.problems, *known.problems),
            targets=known.targets | outcome.refused,
        )
    if not outcome.problems:
        return None
    times = known.times + 1 if known else 1
    until = now + timedelta(seconds=_REFUSED.delay(times, jitter))
    generation = seen.job.metadata.generation
    return Refusal(tuple(outcome.problems), frozenset(outcome.refused), times, until, generation)


def _is_over(refusal: Refusal, seen: Observed, now: datetime) -> bool:
    """Whether it is time to ask again: the server may accept another spec at once."""
    return (
        seen.is_finished
        or now >= refusal.until
        or refusal.generation != seen.job.metadata.generation
    )


def _is_refused(stage: Sequence[Action], refusal: Refusal) -> bool:
    return any(target(action) in refusal.targets for action in stage)
