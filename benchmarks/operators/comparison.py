"""What samples say about us and a rival: a ratio, and whether it is what we want."""

from dataclasses import dataclass

from benchmarks.goal import Wanted
from benchmarks.operators.contenders import OURS
from benchmarks.operators.samples import Samples, values
from benchmarks.operators.spread import Spread, spread


@dataclass(frozen=True)
class Comparison:
    """One line of the table."""

    what: str
    unit: str
    ours: Spread
    rival: str
    theirs: Spread | None
    ratio: Spread | None
    """Ours as a part of theirs, round by round; None where the goal is about ours alone."""
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
    """A value of ours beside a rival's; None where one of them was not measured."""
    ours, theirs = (values(samples, who, case, value) for who in (OURS.name, rival))
    return _compared(what, unit, rival, ours, theirs, wanted)


def absolute(
    samples: Samples, rival: str, *, what: str, value: str, unit: str, case: str, wanted: Wanted
) -> Comparison | None:
    """A value of ours that has to be what it has to be, whatever the rival's is."""
    ours, theirs = (values(samples, who, case, value) for who in (OURS.name, rival))
    if not ours:
        return None
    beside = spread(theirs.values()) if theirs else None
    return Comparison(what, unit, spread(ours.values()), rival, beside, None, wanted)


def between_cases(
    samples: Samples, cases: tuple[str, str], *, what: str, value: str, unit: str, wanted: Wanted
) -> Comparison | None:
    """A value of ours in one case beside the same in another."""
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
