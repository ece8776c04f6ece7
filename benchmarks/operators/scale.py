"""How much is measured: all of it, or enough to see that everything works."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Scale:
    """Sizes and rounds. No figure takes longer than its minutes: it has fewer rounds then."""

    name: str
    rounds: int
    workers: tuple[int, ...]
    slow_workers: tuple[int, ...]
    """Of those, what the Go operator is asked for with its defaults: it makes 5 pods a second."""
    slow_rounds: int
    jobs: int
    pods: int
    unfinished: int
    restarts: int
    minutes: float


FULL = Scale(
    name="full",
    rounds=5,
    workers=(16, 64, 256, 1000),
    slow_workers=(16, 64, 256),
    slow_rounds=2,
    jobs=200,
    pods=10_000,
    unfinished=1000,
    restarts=3,
    minutes=10,
)
QUICK = Scale(
    name="quick",
    rounds=2,
    workers=(16, 64),
    slow_workers=(16,),
    slow_rounds=1,
    jobs=20,
    pods=200,
    unfinished=20,
    restarts=1,
    minutes=4,
)


def with_rounds(scale: Scale, rounds: int | None) -> Scale:
    """The same with another number of rounds, if one is given."""
    return replace(scale, rounds=rounds, slow_rounds=min(rounds, 2)) if rounds else scale
