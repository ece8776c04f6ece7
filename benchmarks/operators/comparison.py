"""Compares our samples with those of another subject: a ratio and a goal."""

from dataclasses import dataclass

from benchmarks.goal import Wanted
from benchmarks.operators.samples import Samples, values
from benchmarks.operators.spread import Spread, spread
from benchmarks.operators.subjects import OURS


@dataclass(frozen=True)
class Comparison:
    """One line of the table."""

    what: str
    unit: str
    ours: Spread
    rival: str
    theirs: Spread | None
    ratio: Spread | None
    """Ours relative to theirs, by round; None if the goal is about ours alone."""
    wanted: Wanted | None

    @property
    def measured(self) -> float:
        return (self.ratio or self.ours).median

    @property
    def is_met(self) -> bool:
        return self.wanted is None or self.wanted.is_met(self.measured)


def against(
    samples: Samples,
    rival: str,
    *,
    what: str,
    value: str,
    unit: str,
    case: str,
    wanted: Wanted | None = None,
) -> Comparison | None:
    """Our value relative to a rival's; None if one of them was not measured."""
    ours, theirs = (values(samples, name, case, value) for name in (OURS.name, rival))
    return _compared(what, unit, rival, ours, theirs, wanted)


def absolute(
    samples: Samples, rival: str, *, what: str, value: str, unit: str, case: str, wanted: Wanted
) -> Comparison | None:
    """Our value with an absolute goal, whatever the rival's is."""
    ours, theirs = (values(samples, name, case, value) for name in (OURS.name, rival))
    if not ours:
        return None
    other = spread(theirs.values()) if theirs else None
    return Comparison(what, unit, spread(ours.values()), rival, other, None, wanted)


def between_cases(
    samples: Samples, cases: tuple[str, str], *, what: str, value: str, unit: str, wanted: Wanted
) -> Comparison | None:
    """Our value in one case relative to another case."""
    first, second = (values(samples, OURS.name, case, value) for case in cases)
    return _compared(what, unit, f"ours, {cases[1]}", first, second, wanted)


def _compared(
    what: str,
    unit: str,
    rival: str,
    ours: dict[int, float],
    theirs: dict[int, float],
    wanted: Wanted | None,
) -> Comparison | None:
    rounds = sorted(ours.keys() & theirs.keys())
    if not rounds:
        return None
    ratios = [ours[each] / theirs[each] for each in rounds if theirs[each]]
    return Comparison(
        what=what,
        unit=unit,
        ours=spread(ours[each] for each in rounds),
        rival=rival,
        theirs=spread(theirs[each] for each in rounds),
        ratio=spread(ratios) if ratios else None,
        wanted=wanted if ratios else None,
    )
