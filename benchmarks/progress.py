"""Progress messages and time limits."""

import sys
import time
from collections.abc import Iterator

_START = time.monotonic()


def say(message: str) -> None:
    """Print a progress message to stderr. Stdout is for results."""
    minutes, seconds = divmod(int(time.monotonic() - _START), 60)
    print(f"==> {minutes:2}:{seconds:02}  {message}", file=sys.stderr, flush=True)


def rounds(count: int, minutes: float) -> Iterator[int]:
    """Round numbers, until a further round would probably exceed the time limit."""
    start = time.monotonic()
    for number in range(count):
        taken = time.monotonic() - start
        if number and taken / number * (number + 1) > minutes * 60:
            say(f"Stopped after {number} of {count} rounds: the time limit is {minutes:g} minutes")
            return
        yield number
