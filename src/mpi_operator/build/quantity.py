"""Resource quantities of Kubernetes: `500m`, `2Gi`, `1e3`. Sums are exact."""

import re
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from math import ceil

_NANO = Fraction(1, 10**9)  # the smallest quantity; Kubernetes rounds up to it
_MAX = 2**63 - 1  # the largest quantity
_MAX_DIGITS = 19

_THOUSANDS = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_DECIMAL = {suffix: Fraction(1000) ** power for power, suffix in enumerate(_THOUSANDS, -3)}
_BINARY = {f"{letter}i": Fraction(1024) ** power for power, letter in enumerate("KMGTPE", 1)}
_SUFFIXES = _DECIMAL | _BINARY

_PATTERN = re.compile(
    r"(?P<sign>[+-]?)(?P<digits>\d+\.?\d*|\.\d+)"
    r"(?:[eE](?P<exponent>[+-]?\d+)|(?P<suffix>[KMGTPE]i|[numkMGTPE]?))",
    re.ASCII,
)


class Notation(Enum):
    """The notation of a quantity. A sum has that of its first part, as in Kubernetes."""

    DECIMAL = "k"
    BINARY = "Ki"
    EXPONENT = "e3"


@dataclass(frozen=True)
class Quantity:
    """An amount and its notation."""

    amount: Fraction
    notation: Notation = Notation.DECIMAL

    def __add__(self, other: "Quantity") -> "Quantity":
        return Quantity(self.amount + other.amount, (self if self.amount else other).notation)

    def __mul__(self, times: int) -> "Quantity":
        return Quantity(self.amount * times, self.notation)

    def __str__(self) -> str:
        """The canonical form: a whole number, and the largest suffix that leaves it whole."""
        if self.amount == 0:
            return "0"
        scales = _scales(self)
        suffix = max(
            (suffix for suffix, scale in scales.items() if (self.amount / scale).denominator == 1),
            key=scales.__getitem__,
        )
        return f"{self.amount / scales[suffix]}{suffix}"


ZERO = Quantity(Fraction(0))


def parse_quantity(text: int | str) -> Quantity:
    """The quantity in a text; ValueError if the text is not one."""
    match = _PATTERN.fullmatch(str(text))
    if match is None:
        raise ValueError(f"{text!r} is not a quantity such as 500m, 2Gi or 1e3")
    if match["exponent"]:
        size, notation = _scaled(match["digits"], int(match["exponent"])), Notation.EXPONENT
    else:
        size = _rounded(Fraction(match["digits"]) * _SUFFIXES[match["suffix"]])
        notation = Notation.BINARY if match["suffix"] in _BINARY else Notation.DECIMAL
    return Quantity(-size if match["sign"] == "-" else size, notation)


def _scaled(digits: str, exponent: int) -> Fraction:
    """Digits with an exponent, which may be too large to compute the number."""
    number = Decimal(digits)
    if number == 0:
        return Fraction(0)
    magnitude = number.adjusted() + exponent
    if magnitude > _MAX_DIGITS:
        return Fraction(_MAX)
    if magnitude < -_MAX_DIGITS:
        return _NANO
    return _rounded(Fraction(number) * Fraction(10) ** exponent)


def _rounded(amount: Fraction) -> Fraction:
    return min(ceil(amount / _NANO) * _NANO, Fraction(_MAX))


def _scales(quantity: Quantity) -> dict[str, Fraction]:
    """The suffixes that a quantity may be written with."""
    if quantity.notation is Notation.EXPONENT:
        powers = range(-9, _MAX_DIGITS, 3)
        return {f"e{power}" if power else "": Fraction(10) ** power for power in powers}
    # Fractions and amounts below 1Ki have no binary suffix: Kubernetes writes them in decimal.
    is_binary = abs(quantity.amount) >= 1024 and quantity.amount.denominator == 1
    if quantity.notation is Notation.BINARY and is_binary:
        return {"": Fraction(1), **_BINARY}
    return _DECIMAL
