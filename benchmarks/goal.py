"""Goals for measured numbers."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Wanted:
    """A limit for a measured number."""

    number: float
    at_most: bool

    def is_met(self, measured: float) -> bool:
        return measured <= self.number if self.at_most else measured >= self.number

    def __str__(self) -> str:
        return f"{'≤' if self.at_most else '≥'} {self.number:g}"


def at_most(number: float) -> Wanted:
    return Wanted(number, at_most=True)


def at_least(number: float) -> Wanted:
    return Wanted(number, at_most=False)


@dataclass(frozen=True)
class Goal:
    """A claim, the measured number and the limit."""

    claim: str
    measured: float
    wanted: Wanted

    @property
    def is_met(self) -> bool:
        return self.wanted.is_met(self.measured)

    def __str__(self) -> str:
        verdict = "met" if self.is_met else "MISSED"
        return f"{verdict:7}{self.claim}: {self.measured:.2f} (goal {self.wanted})"
