"""How long to wait before trying again what failed."""

from dataclasses import dataclass

# 2**63 times any sensible base is past any sensible cap, and still far from overflowing a float.
_MOST_DOUBLINGS = 63


@dataclass(frozen=True)
class Backoff:
    """Delays that double with every failure up to a cap, each cut by up to a half at random.

    The cut keeps a thousand things that failed together from coming back together; it is a cut and
    not an addition so that the cap stays the longest that anybody waits.
    """

    base: float
    cap: float

    def delay(self, failures: int, random: float) -> float:
        """Seconds after that many failures in a row (1 is the first); `random` is in [0, 1)."""
        longest = min(self.base * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), self.cap)
        return longest * (1 - random / 2)
