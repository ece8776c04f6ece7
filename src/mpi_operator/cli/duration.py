"""Durations on the command line: seconds, or numbers with units as in `1h30m`."""

import re
from typing import Any

import click

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_NUMBER = r"[0-9]+(?:\.[0-9]*)?"
_PART = re.compile(rf"({_NUMBER})(ms|[smhd])")
_LONGEST = 100 * 365 * _SECONDS["d"]  # timers cannot wait for much more


class Duration(click.ParamType):  # type: ignore[type-arg]  # generic only since click 8.3
    """A time span above zero, in seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        seconds = value if isinstance(value, float) else parsed(value)
        if seconds is None or not 0 < seconds <= _LONGEST:
            self.fail(f"{value!r} is not a duration such as 90, 90s, 10m, 1h or 1h30m", param, ctx)
        return seconds


def parsed(text: str) -> float | None:
    """The seconds in a text; None if it is not a duration."""
    if re.fullmatch(_NUMBER, text):
        return float(text)
    parts = _PART.findall(text)
    if not parts or "".join(map("".join, parts)) != text:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)
