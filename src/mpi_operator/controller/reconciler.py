"""One look at one job: observe, decide, write, report."""

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING

from mpi_operator.api import names
from mpi_operator.api.types import ConditionType, MPIJobStatus
from mpi_operator.build.settings import Settings
from mpi_operator.kube import errors
from mpi_operator.kube.backoff import Backoff
from mpi_operator.kube.resources import Key

from .actions import Action, target
from .clock import Clock, utc_now
from .events import JobEvent, became_true, warning
from .execute import Executor, Outcome
from .job_state import JobState, JobStates, Refusal
from .launcher_log import LogReader, LogRequest
from .launcher_status import has_ended, launcher_events, restarts
from .observe import Observer
from .observed import Observed
from .plan import Plan, make_plan
from .problems import Problem, most_important
from .publish import Publisher
from .reconcile_limiter import ReconcileLimiter, Slot
from .status import status_of, time_to_reword

if TYPE_CHECKING:
    from .metrics import JobMetrics

_FAILING_FOR_LONG = timedelta(seconds=30)
_BACKOFF = Backoff(base=2.0, cap=300.0)
_SOON = Backoff(base=0.1, cap=30.0)


class Reconciler:
    """Brings jobs closer to what they should be."""

    def __init__(
        self,
        observer: Observer,
        executor: Executor,
        publisher: Publisher,
        listener: LogReader,
        memories: JobStates,
        settings: Settings,
        attention: ReconcileLimiter,
        metrics: "JobMetrics",
        clock: Clock = utc_now,
    ) -> None:
        self._attention = attention
        self._observer = observer
        self._executor = executor
        self._publisher = publisher
        self._listener = listener
        self._memories = memories
        self._settings = settings
        self._metrics = metrics
        self._clock = clock

    async def reconcile(self, key: Key) -> float | None:
        """Bring one job a step closer to its spec; in how many seconds to look again."""
        async with self._attention.place() as place:
            return await self._measured(key, place)

    async def _measured(self, key: Key, place: Slot) -> float | None:
        started = time.monotonic()
        outcome = "error"
        try:
            wait = await self._reconcile(key, place)
            outcome = "done" if wait is None else "later"
        except errors.NotLeader:
            return None  # the process ends and says why; a traceback for each job would hide it
        finally:
            self._metrics.reconcile(outcome, time.monotonic() - started)
        return wait.total_seconds() if wait is not None else None

    async def _reconcile(self, key: Key, place: Slot) -> timedelta | None:
        seen = self._observer.observe(key)
        if seen is None:
            self._forget(key)
            return None
        try:
            wait = await self._look(seen, place)
        except errors.NotLeader:
            raise
        except Exception as error:
            self._tell_of_failure(seen, error)
            raise
        memory = self._memories.of(seen.job)
        memory.failing_since, memory.is_failure_told = None, False
        return wait

    async def _look(self, seen: Observed, place: Slot) -> timedelta | None:
        now = self._clock()
        plan = make_plan(seen, self._settings, now)
        log_request = plan.log_request if plan.log_request and plan.log_request.is_due else None
        if log_request is not None and not plan.stages:
            return await self._listen(seen, log_request)
        place.leave_if_many(len(plan.actions))
        outcome = await self._execute(seen, plan, now)
        self._publisher.tell(seen.job, outcome.events)
        before = seen
        if plan.stages:
            seen = self._observer.around(seen.job, seen.validation_errors)
        if has_ended(seen) and not has_ended(before):
            # It ended meanwhile. How well, has to be judged by a plan that knows of it.
            if outcome.error is not None:
                raise outcome.error
            return timedelta(0)
        problems = (*outcome.problems, *plan.problems)
        status = status_of(seen, problems, now)
        try:
            deferred = await self._publisher.publish(seen.job, status, problems)
        except (errors.Conflict, errors.NotFound):
            return self._soon(seen)  # somebody else wrote or deleted it: the caches will tell
        if deferred is None:
            self._tell_of_launcher(seen, status)
        self._count(seen, status)
        if outcome.error is not None:
            raise outcome.error
        if log_request is not None:
            return await self._listen(seen, log_request)
        if deferred is None:
            deferred = time_to_reword(seen, status, problems, now)
        return self._look_again(seen, plan, outcome, status, deferred)

    async def _listen(self, seen: Observed, log_request: LogRequest) -> timedelta:
        """Hear what a launcher has to say. Then it is looked at again, to tell of that."""
        await self._listener.listen(seen.job, log_request)
        return timedelta(0)

    def _tell_of_failure(self, seen: Observed, error: Exception) -> None:
        """Once, when it does not pass."""
        memory, now = self._memories.of(seen.job), self._clock()
        memory.failing_since = memory.failing_since or now
        if not memory.is_failure_told and now - memory.failing_since >= _FAILING_FOR_LONG:
            memory.is_failure_told = True
            self._publisher.tell(seen.job, [_about_failure(error)])

    async def _execute(self, seen: Observed, plan: Plan, now: datetime) -> Outcome:
        """Do what the plan says, but do not ask again for what was just refused."""
        memory = self._memories.of(seen.job)
        # What is not to be deleted any more, the watch has told of: or this would grow for ever.
        memory.deleted.intersection_update(plan.deletions)
        refusal = memory.refusal
        if refusal is None or _is_over(refusal, seen, now):
            outcome = await self._executor.execute(seen.job, plan.stages)
            memory.refusal = self._refusal(seen, outcome, memory, now)
            if seen.is_finished:
                outcome.events.extend(_untold(outcome.problems, refusal))
            return outcome
        stages = takewhile(lambda stage: not _is_refused(stage, refusal), plan.stages)
        outcome = await self._executor.execute(seen.job, tuple(stages))
        memory.refusal = _together(refusal, outcome)
        outcome.problems.extend(refusal.problems)
        return outcome

    def _refusal(
        self, seen: Observed, outcome: Outcome, memory: JobState, now: datetime
    ) -> Refusal | None:
        if not outcome.problems:
            return None
        times = memory.refusal.times + 1 if memory.refusal else 1
        delay = timedelta(seconds=_BACKOFF.delay(times, random.random()))
        generation = seen.job.metadata.generation
        targets = frozenset(outcome.refused)
        return Refusal(tuple(outcome.problems), targets, times, now + delay, generation)

    def _look_again(
        self,
        seen: Observed,
        plan: Plan,
        outcome: Outcome,
        status: MPIJobStatus,
        deferred: timedelta | None,
    ) -> timedelta | None:
        has_ended = became_true(seen.job.status, status, ConditionType.SUCCEEDED) or became_true(
            seen.job.status, status, ConditionType.FAILED
        )
        if has_ended and deferred is None:
            return timedelta(0)  # now that it is on record, there is cleaning up to do
        if outcome.is_stale:
            return self._soon(seen)
        memory = self._memories.of(seen.job)
        memory.stale_looks = 0
        until = memory.refusal.until - self._clock() if memory.refusal else None
        log_request = plan.log_request.wait if plan.log_request else None
        waits = [plan.requeue_after, log_request, deferred, until]
        wait = min((wait for wait in waits if wait is not None), default=None)
        return max(wait, timedelta(0)) if wait is not None else None

    def _soon(self, seen: Observed) -> timedelta:
        """When to look again at what the caches have wrong; later and later if they stay so.

        What they hear of brings the job back at once, so it costs nothing to be patient.
        """
        memory = self._memories.of(seen.job)
        memory.stale_looks += 1
        return timedelta(seconds=_SOON.delay(memory.stale_looks, random=0))

    def _tell_of_launcher(self, seen: Observed, status: MPIJobStatus) -> None:
        memory, found = self._memories.of(seen.job), restarts(seen)
        known = found if memory.launcher_restarts is None else memory.launcher_restarts
        memory.launcher_restarts = found
        self._publisher.tell(seen.job, launcher_events(seen, status, known))

    def _count(self, seen: Observed, status: MPIJobStatus) -> None:
        namespace, launcher = seen.job.metadata.namespace, names.launcher(seen.job)
        if seen.launcher is not None and status.completion_time is None:
            self._metrics.job_info(namespace, launcher)
        else:
            self._metrics.forget_job(namespace, launcher)

    def _forget(self, key: Key) -> None:
        self._memories.forget(key)
        self._metrics.forget_job(key.namespace, f"{key.name}-launcher")


def _about_failure(error: Exception) -> JobEvent:
    """What nobody would know of but for the log: a server that fails, or a mistake of ours."""
    return warning(
        "OperatorError",
        "The operator has failed with this job for half a minute, and goes on trying: "
        f"{type(error).__name__}: {error}",
    )


def _untold(problems: Sequence[Problem], refusal: Refusal | None) -> Iterator[JobEvent]:
    """What is in the way of cleaning up, once.

    The conditions of a finished job are final, so an event is all that can tell it.
    """
    problem = most_important(problems)
    if problem is not None and problem != most_important(refusal.problems if refusal else ()):
        yield warning(problem.reason, problem.message)


def _is_over(refusal: Refusal, seen: Observed, now: datetime) -> bool:
    """Whether it is time to ask again: another spec may be taken at once."""
    return (
        seen.is_finished
        or now >= refusal.until
        or refusal.generation != seen.job.metadata.generation
    )


def _together(refusal: Refusal, outcome: Outcome) -> Refusal:
    """A refusal with what was refused meanwhile: all of it is asked for again at the same time."""
    return replace(
        refusal,
        problems=(*outcome.problems, *refusal.problems),
        targets=refusal.targets | outcome.refused,
    )


def _is_refused(stage: Sequence[Action], refusal: Refusal) -> bool:
    return any(target(action) in refusal.targets for action in stage)
