"""What was measured: one sample is one contender in one round."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.operators.fairness import Circumstances, check


@dataclass(frozen=True)
class Sample:
    """What one contender took for one case, such as a job with 256 workers."""

    contender: str
    case: str
    round: int
    values: Mapping[str, float]
    circumstances: Circumstances
    details: Mapping[str, int] = field(default_factory=dict)
    """Something that explains the values, such as how often what was written."""


Samples = Sequence[Sample]


def values(samples: Samples, contender: str, case: str, value: str) -> dict[int, float]:
    """A value by round."""
    return {
        each.round: each.values[value]
        for each in samples
        if (each.contender, each.case) == (contender, case)
    }


def fair(samples: Samples) -> Samples:
    """The same samples, if they can be compared; `Unfair` if not."""
    check(
        {
            f"{each.contender}, {each.case}, round {each.round}": each.circumstances
            for each in samples
        }
    )
    return samples
