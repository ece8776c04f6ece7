"""What to do about a job: from what is known to an ordered list of actions. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from mpi_operator.build.settings import Settings
from mpi_operator.kube.resources import PODS

from . import cleanup, launcher, pod_state, prerequisites, replacement, worker_set
from .actions import Action, Delete, delete
from .bare_launcher import check_limits
from .decision import Decision, earliest, merged
from .failed_worker import failed_worker
from .horovod_blacklist import blacklisted_hosts
from .host_announcement import announce_hosts
from .host_list import list_hosts
from .init_timeout import init_timeout
from .job_record import JobRecord
from .launcher_log import LogRequest, check_log
from .launcher_retry import check_retry, keeping_actions, retry_events, with_retry
from .launcher_status import has_ended, has_succeeded, last_failure
from .leaving_workers import earlier_departures, remaining_times
from .lost_workers import lost_workers
from .observed import Observed
from .pod_diagnostics import diagnose_pods
from .problems import Problem, ProblemReason
from .replacement import Replacements
from .retry_count import NO_RETRIES

# The object that has a name which the job needs may have no label, so no watch reports its end.
_CHECK_NAMES_AGAIN = timedelta(minutes=1)


@dataclass(frozen=True)
class Plan:
    """Stages, one after the other; the actions of a stage together.

    A stage begins when the one before it succeeded.
    """

    stages: tuple[tuple[Action, ...], ...] = ()
    problems: tuple[Problem, ...] = ()  # what keeps the job from progressing
    requeue_after: timedelta | None = None
    log_request: LogRequest | None = None

    @property
    def actions(self) -> tuple[Action, ...]:
        return tuple(action for stage in self.stages for action in stage)

    @property
    def deletions(self) -> tuple[Delete, ...]:
        return tuple(action for action in self.actions if isinstance(action, Delete))


def make_plan(seen: Observed, settings: Settings, now: datetime) -> Plan:
    """What brings a job closer to what it should be."""
    if seen.is_finished:
        cleaned = cleanup.clean_up(seen, settings, now)
        stages = [launcher.adopting_actions(seen), cleaned.actions]
        return _plan(stages, requeue_after=cleaned.requeue_after)
    seen = with_retry(seen, now)
    if has_ended(seen):
        return _ending(seen, now)
    if seen.unreadable:  # what is not known must not be created, replaced or deleted
        problems = (Problem(ProblemReason.UNREADABLE, each) for each in seen.unreadable)
        return Plan(problems=tuple(problems))
    if seen.validation_errors:
        return Plan(problems=(Problem(ProblemReason.INVALID_JOB, seen.validation_errors),))
    if seen.is_suspended:
        return _suspended(seen, settings, now)
    return _running(seen, settings, now)


def _ending(seen: Observed, now: datetime) -> Plan:
    """Nothing is touched before the end is stored."""
    judged = lost_workers(seen, now) if has_succeeded(seen) else Decision()
    return Plan(problems=judged.problems, requeue_after=judged.requeue_after)


def _suspended(seen: Observed, settings: Settings, now: datetime) -> Plan:
    """Delete the pods. What they need is kept, and created if the job begins suspended."""
    granted = prerequisites.ensure_exec(seen, settings, now)
    # Without its count, a retired launcher would seem to have succeeded.
    record = JobRecord(retries=seen.retries if seen.retired else NO_RETRIES)
    prepared = [
        *launcher.adopting_actions(seen),
        *prerequisites.service_actions(seen),
        # The list goes before the hosts, which otherwise would seem to have vanished.
        *prerequisites.config_map_actions(seen, settings, (), record, retry_events(seen)),
        *prerequisites.ensure_keys(seen, now).actions,
    ]
    removed = [
        *(delete(PODS, pod) for pod in seen.worker_pods if not pod_state.is_terminating(pod)),
        *keeping_actions(seen),
        *cleanup.pod_group_deletion(seen, settings),
    ]
    # Last: if it is refused, workers must still be deleted.
    created = [] if seen.taken else launcher.suspended_creation(seen, settings)
    names = _check_names(seen)
    return _plan(
        [granted.actions, prepared, launcher.stopping_actions(seen), removed, created],
        problems=names.problems,
        requeue_after=names.requeue_after,
    )


def _running(seen: Observed, settings: Settings, now: datetime) -> Plan:
    """Complete the job: what pods need, the workers, the launcher."""
    names, pods, ends = _check_names(seen), diagnose_pods(seen, now), _check_ends(seen, now)
    if ends.problems:
        return Plan(problems=(*ends.problems, *names.problems, *pods.problems))
    replaced, listed = replacement.replacements(seen, now), list_hosts(seen, now)
    announced = announce_hosts(seen, listed.hosts, now)
    departures = earlier_departures(seen, announced.changed)
    remaining = remaining_times(seen, announced.changed, departures, now)
    granted = prerequisites.ensure_exec(seen, settings, now)
    group = tuple(prerequisites.pod_group_actions(seen, settings))
    # A group that exists follows a change of size before the launcher can learn of it.
    new_group, resized = (group, ()) if seen.pod_group is None else ((), group)
    record = JobRecord(
        replaced.counts, last_failure(seen), seen.retries, announced.changed, departures
    )
    prepared = _prepare(seen, settings, listed.hosts, record, replaced, now)
    leaving = worker_set.deletions(seen, replaced, remaining)
    lost, log = worker_set.lost_with_their_node(seen, now), check_log(seen, settings, now)
    removed = [*leaving.actions, *lost.actions, *keeping_actions(seen)]
    # Where a name is taken the job cannot be complete, and half a job only holds resources.
    workers = Decision() if seen.taken else worker_set.creations(seen, replaced, settings, now)
    started = () if seen.taken else launcher.starting_actions(seen, settings, now)
    given_up = Decision(problems=tuple(replaced.given_up.values()))
    decided = merged(names, given_up, lost, pods, ends, granted, prepared, leaving, workers)
    return _plan(
        [
            [*granted.actions, *resized],
            [*prepared.actions, *new_group],
            announced.actions,
            removed,
            workers.actions,
            started,
        ],
        problems=[*decided.problems, *log.problems, *blacklisted_hosts(seen, now).problems],
        requeue_after=earliest(decided.requeue_after, listed.requeue_after),
        log_request=log.request,
    )


def _check_ends(seen: Observed, now: datetime) -> Decision:
    """What ends a job that has not ended."""
    return merged(
        init_timeout(seen, now),
        failed_worker(seen),
        check_limits(seen, now),
        check_retry(seen, now),
    )


def _check_names(seen: Observed) -> Decision:
    """Report the names that the job needs and something else has."""
    problems = tuple(Problem(ProblemReason.NAME_TAKEN, str(taken)) for taken in seen.taken)
    return Decision(problems=problems, requeue_after=_CHECK_NAMES_AGAIN if problems else None)


def _prepare(
    seen: Observed,
    settings: Settings,
    hosts: frozenset[int],
    record: JobRecord,
    replaced: Replacements,
    now: datetime,
) -> Decision:
    """Create or correct what the pods need, and record what must survive a restart."""
    events = (*replaced.events, *retry_events(seen))
    before_keys = (
        *launcher.adopting_actions(seen),
        *prerequisites.service_actions(seen),
        *prerequisites.config_map_actions(seen, settings, hosts, record, events),
    )
    return merged(Decision(before_keys), prerequisites.ensure_keys(seen, now))


def _plan(
    stages: Iterable[Iterable[Action]],
    *,
    problems: Iterable[Problem] = (),
    requeue_after: timedelta | None = None,
    log_request: LogRequest | None = None,
) -> Plan:
    filled = tuple(stage for stage in map(tuple, stages) if stage)
    return Plan(filled, tuple(problems), requeue_after, log_request)
