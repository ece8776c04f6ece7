"""Short text for people: ages, tables, the first line of a message."""

from collections.abc import Sequence
from datetime import datetime

_FRAME = " \t-=*#"  # programs frame their messages with these
_MAX_GIST = 160


def counted(number: int, noun: str) -> str:
    """A number of things: `1 worker`, `2 workers`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def age(since: datetime | None, now: datetime) -> str:
    """The time since then, in one unit."""
    if since is None:
        return "-"
    seconds = max(0, int((now - since).total_seconds()))
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


def table(rows: Sequence[Sequence[str]], indent: str = "", widths: Sequence[int] = ()) -> str:
    """Rows in aligned columns, which have at least these widths."""
    needed = [max(map(len, column)) for column in zip(*rows, strict=True)]
    widths = [*map(max, needed, widths)] if widths else needed
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join(indent + line for line in lines)


def gist(message: str) -> str:
    """The first line of a message that says something, with the next one if it ends with `:`."""
    stripped = (line.strip(_FRAME) for line in message.splitlines())
    lines = [line for line in stripped if any(map(str.isalnum, line))]
    first = lines[0] if lines else message.strip()
    if first.endswith(":") and len(lines) > 1:
        first = f"{first} {lines[1]}"
    first = first.rstrip(",;:")
    return first if len(first) <= _MAX_GIST else f"{first[: _MAX_GIST - 1]}…"
