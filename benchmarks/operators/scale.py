"""How much to measure: everything, or just enough for a test run."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Scale:
    """Sizes and rounds. A figure that takes longer than `minutes` has fewer rounds."""

    name: str
    rounds: int
    workers: tuple[int, ...]
    slow_workers: tuple[int, ...]
    """The sizes for the Go operator with its defaults, which creates 5 pods per second."""
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
    """The scale with another number of rounds, if given."""
    return replace(scale, rounds=rounds, slow_rounds=min(rounds, 2)) if rounds else scale
