"""The median and the range of several measurements."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """The median, minimum and maximum of some measurements."""

    median: float
    least: float
    most: float
    count: int

    def __str__(self) -> str:
        if self.count == 1:
            return number(self.median)
        return f"{number(self.median)} ({number(self.least)} to {number(self.most)})"


def spread(values: Iterable[float]) -> Spread:
    """The spread of some measurements."""
    found = sorted(values)
    if not found:
        raise ValueError("Nothing was measured, so there is no median.")
    return Spread(statistics.median(found), found[0], found[-1], len(found))


def number(value: float) -> str:
    """The number with three significant digits and no exponent."""
    if value == 0:
        return "0"
    size = abs(value)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{value:,.{digits}f}"
