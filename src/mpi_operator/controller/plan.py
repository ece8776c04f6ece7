"""What to do about a job: from what is known to an ordered list of actions. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from mpi_operator.build.settings import Settings
from mpi_operator.kube.resources import PODS

from . import cleanup, launcher, pod_state, prerequisites, replacement, worker_set
from .actions import Action, Delete, delete
from .clock import ahead
from .host_list import hosts_to_list
from .init_timeout import init_timeout, time_to_init_timeout
from .launcher_log import LogRequest, launcher_waits, next_log_request
from .launcher_status import has_ended, has_succeeded
from .lost_workers import lost_workers, time_to_judge
from .observed import Observed
from .pod_diagnostics import pod_problems, time_to_tell
from .problems import Problem, ProblemReason

# Whoever has a name that the job needs may have no label by which its going is noticed.
_LOOK_FOR_FREE_NAMES = timedelta(minutes=1)


@dataclass(frozen=True)
class Plan:
    """Stages, one after the other; the actions of a stage together.

    A stage begins when the one before it has been done without a refusal.
    """

    stages: tuple[tuple[Action, ...], ...] = ()
    problems: tuple[Problem, ...] = ()  # what keeps the job from going on
    requeue_after: timedelta | None = None
    log_request: LogRequest | None = None  # when all that has been done

    @property
    def actions(self) -> tuple[Action, ...]:
        return tuple(action for stage in self.stages for action in stage)

    @property
    def deletions(self) -> tuple[Delete, ...]:
        return tuple(action for action in self.actions if isinstance(action, Delete))


def make_plan(seen: Observed, settings: Settings, now: datetime) -> Plan:
    """What brings a job closer to what it should be."""
    if seen.is_finished:
        adopted = launcher.adopting_actions(seen)
        actions = cleanup.cleanup_actions(seen, settings, now)
        return _plan([adopted, actions], requeue_after=ahead(cleanup.time_to_live(seen, now)))
    if has_ended(seen):
        return _ending(seen, now)
    if seen.validation_errors:
        return Plan(problems=(Problem(ProblemReason.INVALID_JOB, seen.validation_errors),))
    if seen.is_suspended:
        return _suspended(seen, settings, now)
    return _running(seen, settings, now)


def _ending(seen: Observed, now: datetime) -> Plan:
    """Nothing is touched before the end is on record."""
    if not has_succeeded(seen):
        return Plan()
    if wait := time_to_judge(seen, now):
        return Plan(requeue_after=wait)
    lost = lost_workers(seen)
    return Plan(problems=(lost,) if lost else ())


def _suspended(seen: Observed, settings: Settings, now: datetime) -> Plan:
    """The pods go. What they need is kept, and made if the job begins suspended."""
    prepared = [
        *launcher.adopting_actions(seen),
        *prerequisites.service_actions(seen),
        # The list goes before the hosts, which otherwise would seem to have vanished.
        *prerequisites.config_map_actions(seen, settings, hosts=(), counts={}),
        *prerequisites.key_actions(seen, now),
    ]
    removed = [
        *(delete(PODS, pod) for pod in seen.worker_pods if not pod_state.is_terminating(pod)),
        *cleanup.pod_group_deletion(seen, settings),
    ]
    # Last: where it is refused, workers of a launcher that never was must still go.
    created = [] if seen.taken else launcher.suspended_creation(seen, settings)
    return _plan(
        [prepared, launcher.stopping_actions(seen), removed, created],
        problems=_taken_problems(seen),
        requeue_after=_LOOK_FOR_FREE_NAMES if seen.taken else None,
    )


def _running(seen: Observed, settings: Settings, now: datetime) -> Plan:
    if late := init_timeout(seen, now):
        return Plan(problems=(late, *_taken_problems(seen), *pod_problems(seen, now)))
    replaced = replacement.replacements(seen, now)
    hosts, unsettled = hosts_to_list(seen, now)
    prepared = [
        *launcher.adopting_actions(seen),
        *prerequisites.service_actions(seen),
        *prerequisites.config_map_actions(seen, settings, hosts, replaced.counts, replaced.events),
        *prerequisites.key_actions(seen, now),
        *prerequisites.pod_group_actions(seen, settings),
    ]
    removed = worker_set.deletions(seen, replaced, now)
    # Where a name is taken the job cannot be complete, and half a job only holds resources.
    blocked = bool(seen.taken)
    workers = [] if blocked else worker_set.creations(seen, replaced, settings, now)
    started = [] if blocked else launcher.starting_actions(seen, settings)
    return _plan(
        [prepared, removed, workers, started],
        problems=[
            *_taken_problems(seen),
            *replaced.given_up.values(),
            *worker_set.lost_worker_problems(seen, now),
            *pod_problems(seen, now),
            *([waits] if (waits := launcher_waits(seen)) else []),
        ],
        requeue_after=_earliest(
            unsettled,
            _LOOK_FOR_FREE_NAMES if blocked else None,
            worker_set.time_to_loss(seen, now),
            time_to_tell(seen, now),
            time_to_init_timeout(seen, now),
            prerequisites.time_to_check_keys(seen, now),
            *(when - now for when in replaced.not_before.values() if when > now),
        ),
        log_request=next_log_request(seen, settings, now),
    )


def _taken_problems(seen: Observed) -> list[Problem]:
    return [Problem(ProblemReason.NAME_TAKEN, str(taken)) for taken in seen.taken]


def _plan(
    stages: Iterable[Iterable[Action]],
    *,
    problems: Iterable[Problem] = (),
    requeue_after: timedelta | None = None,
    log_request: LogRequest | None = None,
) -> Plan:
    filled = (tuple(stage) for stage in stages)
    return Plan(
        tuple(stage for stage in filled if stage), tuple(problems), requeue_after, log_request
    )


def _earliest(*waits: timedelta | None) -> timedelta | None:
    return min((wait for wait in waits if wait is not None), default=None)
