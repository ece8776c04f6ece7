"""What SIGINT, SIGTERM and SIGHUP do, from our first line of Python to the last.

Outside of a run there is nothing to clean up, so they end the process at once: no handler that
raises, because an exception in the middle of an import has a traceback of its own. Inside of
`deferred` they are noted, and the run ends in order. The exit code is that of a shell: 128 and the
number of the signal.

Imports only what is built in, because it is loaded first.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from signal import SIG_IGN, SIGHUP, SIGINT, SIGTERM, getsignal, signal
else:
    from _signal import SIG_IGN, SIGHUP, SIGINT, SIGTERM, getsignal, signal

_NUMBERS = (SIGHUP, SIGINT, SIGTERM)


def exit_code(number: int) -> int:
    return 128 + number


def install() -> None:
    """End the process at once on a signal, unless the caller ignores it.

    `nohup` does so with SIGHUP, and a script with SIGINT for what it starts with `&`.
    """
    for number in _NUMBERS:
        if getsignal(number) != SIG_IGN:
            signal(number, _exit)


class Deferred:
    """Notes the first signal while a block runs.

    with Deferred() as signals:
        signals.on_arrival = stop
    """

    def __init__(self) -> None:
        self.number = 0
        self.on_arrival: Callable[[], object] = lambda: None

    def __enter__(self) -> Deferred:
        self._before = {number: getsignal(number) for number in _NUMBERS}
        for number, handler in self._before.items():
            if handler != SIG_IGN:
                signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal(number, handler)

    def _note(self, number: int, _: object) -> None:
        self.number = self.number or number
        self.on_arrival()


def _exit(number: int, _: object) -> None:
    os._exit(exit_code(number))
