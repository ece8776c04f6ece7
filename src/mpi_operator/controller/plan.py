"""What to do about a job: from what is known to an ordered list of actions. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from mpi_operator.build.settings import Settings
from mpi_operator.kube.resources import PODS

from . import cleanup, launcher, pod_state, prerequisites, problems, replacement, worker_set
from .actions import Action, Delete, delete
from .clock import ahead
from .host_list import hosts_to_list
from .init_timeout import init_timeout, time_to_init_timeout
from .launcher_end import has_ended, has_succeeded
from .launcher_waits import Hearing, launcher_waits, next_hearing
from .lost_workers import lost_workers, time_to_judge
from .observed import Observed
from .pod_diagnostics import pod_troubles, time_to_tell
from .problems import Trouble

# Whoever has a name that the job needs may have no label by which its going is noticed.
_LOOK_FOR_FREE_NAMES = timedelta(minutes=1)


@dataclass(frozen=True)
class Plan:
    """Stages, one after the other; the actions of a stage together.

    A stage begins when the one before it has been done without a refusal.
    """

    stages: tuple[tuple[Action, ...], ...] = ()
    troubles: tuple[Trouble, ...] = ()  # what keeps the job from going on
    look_again: timedelta | None = None
    hearing: Hearing | None = None  # when all that has been done

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
        return _plan([adopted, actions], look_again=ahead(cleanup.time_to_live(seen, now)))
    if has_ended(seen):
        return _ending(seen, now)
    if seen.complaints:
        return Plan(troubles=(Trouble(problems.Reason.INVALID_JOB, seen.complaints),))
    if seen.is_suspended:
        return _suspended(seen, settings, now)
    return _running(seen, settings, now)


def _ending(seen: Observed, now: datetime) -> Plan:
    """Nothing is touched before the end is on record."""
    if not has_succeeded(seen):
        return Plan()
    if wait := time_to_judge(seen, now):
        return Plan(look_again=wait)
    lost = lost_workers(seen)
    return Plan(troubles=(lost,) if lost else ())


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
        troubles=_taken_troubles(seen),
        look_again=_LOOK_FOR_FREE_NAMES if seen.taken else None,
    )


def _running(seen: Observed, settings: Settings, now: datetime) -> Plan:
    if late := init_timeout(seen, now):
        return Plan(troubles=(late, *_taken_troubles(seen), *pod_troubles(seen, now)))
    replaced = replacement.replacements(seen, now)
    hosts, unsettled = hosts_to_list(seen, now)
    prepared = [
        *launcher.adopting_actions(seen),
        *prerequisites.service_actions(seen),
        *prerequisites.config_map_actions(seen, settings, hosts, replaced.counts, replaced.news),
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
        troubles=[
            *_taken_troubles(seen),
            *replaced.given_up.values(),
            *worker_set.lost_troubles(seen, now),
            *pod_troubles(seen, now),
            *([waits] if (waits := launcher_waits(seen)) else []),
        ],
        look_again=_earliest(
            unsettled,
            _LOOK_FOR_FREE_NAMES if blocked else None,
            worker_set.time_to_loss(seen, now),
            time_to_tell(seen, now),
            time_to_init_timeout(seen, now),
            prerequisites.time_to_check_keys(seen, now),
            *(when - now for when in replaced.not_before.values() if when > now),
        ),
        hearing=next_hearing(seen, settings, now),
    )


def _taken_troubles(seen: Observed) -> list[Trouble]:
    return [Trouble(problems.Reason.NAME_TAKEN, str(taken)) for taken in seen.taken]


def _plan(
    stages: Iterable[Iterable[Action]],
    *,
    troubles: Iterable[Trouble] = (),
    look_again: timedelta | None = None,
    hearing: Hearing | None = None,
) -> Plan:
    filled = (tuple(stage) for stage in stages)
    return Plan(tuple(stage for stage in filled if stage), tuple(troubles), look_again, hearing)


def _earliest(*waits: timedelta | None) -> timedelta | None:
    return min((wait for wait in waits if wait is not None), default=None)
