"""One reconcile of one job: observe, decide, write, report."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from mpi_operator.api import names
from mpi_operator.api.types import ConditionType, MPIJobStatus
from mpi_operator.build.settings import Settings
from mpi_operator.kube import errors
from mpi_operator.kube.backoff import Backoff
from mpi_operator.kube.resources import Key

from .cached_types import StoredJob
from .decision import AT_ONCE, earliest
from .events import JobEvent, became_true, warning
from .execute import Executor, Outcome
from .job_state import JobStates
from .launcher_log import LogReader, LogRequest
from .launcher_status import has_ended, launcher_events, restarts
from .observe import Observer
from .observed import Observed
from .plan import Plan, make_plan
from .problems import Problem, most_important
from .publish import Published, Publisher
from .reconcile_limiter import ReconcileLimiter, Slot
from .remember import (
    FAILING_FOR_LONG,
    after_error,
    after_execution,
    after_publishing,
    after_reading,
    after_success,
    after_writes,
    permitted_stages,
    remember,
)
from .status import decide_status

if TYPE_CHECKING:
    from .metrics import JobMetrics

_STALE = Backoff(base=0.1, cap=30.0)


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Reconciler:
    """Brings jobs closer to what they should be. It owns what the process remembers about them."""

    def __init__(
        self,
        observer: Observer,
        executor: Executor,
        publisher: Publisher,
        log_reader: LogReader,
        settings: Settings,
        limiter: ReconcileLimiter,
        metrics: "JobMetrics",
        clock: Callable[[], datetime] = _utc_now,
    ) -> None:
        self._limiter = limiter
        self._observer = observer
        self._executor = executor
        self._publisher = publisher
        self._log_reader = log_reader
        self._states = JobStates()
        self._settings = settings
        self._metrics = metrics
        self._clock = clock

    async def reconcile(self, key: Key) -> float | None:
        """Bring one job a step closer to its spec; in how many seconds to reconcile it again."""
        async with self._limiter.slot() as slot:
            return await self._measured(key, slot)

    def is_own_write(self, job: StoredJob) -> bool:
        """Whether a job is as we wrote it last."""
        state = self._states.find(job.metadata.key)
        return state is not None and state.version == job.metadata.resource_version

    async def _measured(self, key: Key, slot: Slot) -> float | None:
        started = time.monotonic()
        outcome = "error"
        try:
            wait = await self._reconcile(key, slot)
            outcome = "done" if wait is None else "later"
        except errors.NotLeader:
            return None  # the process ends and says why; a traceback for each job would hide it
        finally:
            self._metrics.reconcile(outcome, time.monotonic() - started)
        return wait.total_seconds() if wait is not None else None

    async def _reconcile(self, key: Key, slot: Slot) -> timedelta | None:
        now = self._clock()
        seen = self._observer.observe(key)
        if seen is None:
            self._forget(key)
            return None
        try:
            wait = await self._steps(seen, slot, now)
        except errors.NotLeader:
            raise
        except Exception as error:
            self._report_failure(seen, error, now)
            raise
        self._states.put(seen.job, after_success(self._states.of(seen.job)))
        return wait

    async def _steps(self, observed: Observed, slot: Slot, now: datetime) -> timedelta | None:
        """Remember, plan, execute; then report.

        All steps use the time of the beginning. Writing may take seconds, but what is measured
        from `now` was observed then; what is observed later only enters the status.
        """
        job = observed.job
        state = self._states.put(job, remember(self._states.of(job), observed, now))
        planned = seen = replace(observed, state=state)
        plan = make_plan(seen, self._settings, now)
        outcome, has_written = await self._execute(seen, plan, slot, now)
        if has_written:
            seen = self._observer.observe_again(seen)
        if has_ended(seen) and not has_ended(planned):
            # The launcher ended meanwhile. Only a plan that knows so may judge how well.
            _raise_error(outcome)
            return AT_ONCE
        return await self._report(seen, plan, outcome, now, has_written=has_written)

    async def _report(
        self, seen: Observed, plan: Plan, outcome: Outcome, now: datetime, *, has_written: bool
    ) -> timedelta | None:
        """Publish the status, read the log if it is due, and merge the waits of all steps.

        Two cases end earlier, because the status is not stored: the log comes first, or another
        writer was faster.
        """
        refusal = self._states.of(seen.job).refusal
        problems = (*(refusal.problems if refusal else ()), *plan.problems)
        decided = decide_status(seen, problems, now)
        request = None if outcome.error else plan.log_request
        if request and _comes_first(request, seen, decided.status, has_written=has_written):
            await self._read_log(seen, request, now)
            return AT_ONCE
        try:
            published = await self._publish(seen, decided.status, problems, now)
        except (errors.Conflict, errors.NotFound):
            return self._stale_wait(seen, is_stale=True)  # the caches will show the other write
        _raise_error(outcome)
        is_end_stored = published.is_stored and _has_finished(seen, decided.status)
        if request and request.is_due and not is_end_stored:
            await self._read_log(seen, request, now)
        wait = earliest(
            AT_ONCE if is_end_stored else None,  # to clean up
            self._stale_wait(seen, is_stale=outcome.is_stale),
            plan.requeue_after,
            request.wait if request else None,  # none is left if the log was just read
            decided.requeue_after if published.is_stored else published.requeue_after,
            refusal.until - now if refusal else None,
        )
        return wait if wait is None else max(wait, AT_ONCE)

    async def _execute(
        self, seen: Observed, plan: Plan, slot: Slot, now: datetime
    ) -> tuple[Outcome, bool]:
        """Execute the stages that are due; the outcome, and whether there were any."""
        stages = permitted_stages(plan, seen, now)
        slot.leave_if_many(sum(map(len, stages)))
        outcome = await self._executor.execute(seen.job, stages)
        self._publisher.record(seen.job, [*outcome.events, *_cleanup_events(seen, outcome)])
        state = after_execution(seen, plan, outcome, now, jitter=random.random())
        self._states.put(seen.job, state)
        return outcome, bool(stages)

    async def _read_log(self, seen: Observed, request: LogRequest, now: datetime) -> None:
        """Read the launcher's log. What it says is part of the status: plan again with it."""
        state = self._states.of(seen.job)
        reading = await self._log_reader.read(seen.job, request, state.log_reading, now)
        self._states.put(seen.job, after_reading(state, reading))

    async def _publish(
        self, seen: Observed, status: MPIJobStatus, problems: Sequence[Problem], now: datetime
    ) -> Published:
        """Store the status, and report what follows from it."""
        state = self._states.of(seen.job)
        published = await self._publisher.publish(
            seen.job, status, problems, state.counts_changed, now
        )
        self._states.put(seen.job, after_publishing(state, seen, published))
        if published.is_stored:
            known = restarts(seen) if state.launcher_restarts is None else state.launcher_restarts
            self._publisher.record(seen.job, launcher_events(seen, status, known))
        self._count(seen, status)
        return published

    def _stale_wait(self, seen: Observed, *, is_stale: bool) -> timedelta | None:
        """When to reconcile a job again whose caches are behind: later and later.

        What the caches learn brings the job back at once, so waiting costs nothing.
        """
        state = after_writes(self._states.of(seen.job), is_stale=is_stale)
        self._states.put(seen.job, state)
        return (
            timedelta(seconds=_STALE.delay(state.stale_reconciles, random=0)) if is_stale else None
        )

    def _report_failure(self, seen: Observed, error: Exception, now: datetime) -> None:
        """Record an event, once, for an error that persists; otherwise only the log has it."""
        before = self._states.of(seen.job)
        after = self._states.put(seen.job, after_error(before, now))
        if after.is_failure_reported and not before.is_failure_reported:
            message = (
                f"Reconcile has failed for {FAILING_FOR_LONG.seconds}s, retrying: "
                f"{type(error).__name__}: {error}"
            )
            self._publisher.record(seen.job, [warning("OperatorError", message)])

    def _count(self, seen: Observed, status: MPIJobStatus) -> None:
        namespace, launcher = seen.job.metadata.namespace, names.launcher(seen.job)
        if seen.launcher is not None and status.completion_time is None:
            self._metrics.job_info(namespace, launcher)
        else:
            self._metrics.forget_job(namespace, launcher)

    def _forget(self, key: Key) -> None:
        self._states.forget(key)
        self._metrics.forget_job(key.namespace, names.launcher_of(key.name))


def _raise_error(outcome: Outcome) -> None:
    """Raise what made a write fail: the queue backs off then."""
    if outcome.error is not None:
        raise outcome.error


def _comes_first(
    request: LogRequest, seen: Observed, status: MPIJobStatus, *, has_written: bool
) -> bool:
    """Whether the launcher's log is read before a status is published.

    A new process reads it before it changes what another one may have reported from it. What was
    written is published first: where each write takes long, the log would be due every time.
    """
    is_changed = status.conditions != seen.job.status.conditions
    return (request.is_due and not has_written) or (request.is_assumed and is_changed)


def _has_finished(seen: Observed, status: MPIJobStatus) -> bool:
    ends = (ConditionType.SUCCEEDED, ConditionType.FAILED)
    return any(became_true(seen.job.status, status, kind) for kind in ends)


def _cleanup_events(seen: Observed, outcome: Outcome) -> Iterator[JobEvent]:
    """What blocks the clean-up, once: the conditions of a finished job are final."""
    refusal = seen.state.refusal
    problem = most_important(outcome.problems)
    known = most_important(refusal.problems if refusal else ())
    if seen.is_finished and problem is not None and problem != known:
        yield warning(problem.reason, problem.message)
