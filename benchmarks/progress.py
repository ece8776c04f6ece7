"""Telling how far it is, and ending a figure in time."""

import sys
import time
from collections.abc import Iterator

_START = time.monotonic()


def say(message: str) -> None:
    """A line for whoever waits. Standard output belongs to results."""
    minutes, seconds = divmod(int(time.monotonic() - _START), 60)
    print(f"==> {minutes:2}:{seconds:02}  {message}", file=sys.stderr, flush=True)


def rounds(count: int, minutes: float) -> Iterator[int]:
    """Numbers of rounds; no new one begins where it would probably end after so many minutes."""
    start = time.monotonic()
    for number in range(count):
        taken = time.monotonic() - start
        if number and taken / number * (number + 1) > minutes * 60:
            say(f"only {number} of {count} rounds: the {minutes:g} minutes for this are over")
            return
        yield number
