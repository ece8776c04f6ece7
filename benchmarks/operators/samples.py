"""Samples: the measurements of one subject in one round."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.operators.comparability import Environment, check


@dataclass(frozen=True)
class Sample:
    """The measurements of one subject for one case, such as a job with 256 workers."""

    subject: str
    case: str
    round: int
    values: Mapping[str, float]
    environment: Environment
    details: Mapping[str, int] = field(default_factory=dict)
    """What explains the values, such as the number of writes by kind."""


Samples = Sequence[Sample]


def values(samples: Samples, subject: str, case: str, value: str) -> dict[int, float]:
    """A value by round."""
    return {
        each.round: each.values[value]
        for each in samples
        if (each.subject, each.case) == (subject, case)
    }


def comparable(samples: Samples) -> Samples:
    """The samples; raises NotComparable if they are not comparable."""
    check(
        {f"{each.subject}, {each.case}, round {each.round}": each.environment for each in samples}
    )
    return samples
