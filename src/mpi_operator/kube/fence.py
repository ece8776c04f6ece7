"""Permission to write, as long as it lasts."""

from typing import Protocol


class Fence(Protocol):
    """Asked before each write is sent, also before it is sent again."""

    @property
    def grace(self) -> float:
        """Seconds after the permission in which nobody else writes: what is under way may land."""
        ...

    def remaining(self) -> float:
        """Seconds for which writing stays allowed; NotLeader when that time is over."""
        ...

    def doubt(self) -> None:
        """A write was given up and may still land: for `grace` seconds let nobody else in early."""
        ...
