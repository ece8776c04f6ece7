"""What one policy decides, as a value: what to do, what is wrong, and when to ask it again."""

from dataclasses import dataclass
from datetime import timedelta

from .actions import Action
from .problems import Problem

AT_ONCE = timedelta(0)


@dataclass(frozen=True)
class Decision:
    """The three belong together, so one function gives all of them."""

    actions: tuple[Action, ...] = ()
    problems: tuple[Problem, ...] = ()
    requeue_after: timedelta | None = None


def merged(*decisions: Decision) -> Decision:
    """Several decisions as one."""
    return Decision(
        tuple(action for each in decisions for action in each.actions),
        tuple(problem for each in decisions for problem in each.problems),
        earliest(*(each.requeue_after for each in decisions)),
    )


def earliest(*waits: timedelta | None) -> timedelta | None:
    """The shortest of the waits that there are."""
    return min((wait for wait in waits if wait is not None), default=None)


def ahead(wait: timedelta | None) -> timedelta | None:
    """A wait that is not over yet. One that is over would requeue the job again and again."""
    return wait if wait is not None and wait > AT_ONCE else None
