"""How long to wait before a retry."""

from dataclasses import dataclass

# 2**63 times any base exceeds any cap, and is still far from overflowing a float.
_MOST_DOUBLINGS = 63


@dataclass(frozen=True)
class Backoff:
    """Delays that double with every failure up to a cap, each reduced by up to half at random.

    The randomness spreads the retries of a thousand things that failed together. It only reduces
    delays, so that none is longer than the cap.
    """

    base: float
    cap: float

    def delay(self, failures: int, random: float) -> float:
        """Seconds after that many failures in a row (1 is the first); `random` is in [0, 1)."""
        longest = min(self.base * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), self.cap)
        return longest * (1 - random / 2)
