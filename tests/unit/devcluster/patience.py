"""Waiting in tests that are not asynchronous: with a deadline, and no longer than needed."""

import time
from collections.abc import Callable


def until(fact: Callable[[], bool], seconds: float = 30) -> None:
    """Return as soon as `fact` is true."""
    deadline = time.monotonic() + seconds
    while not fact():
        if time.monotonic() > deadline:
            raise TimeoutError(f"this did not become true within {seconds} s")
        time.sleep(0.02)
