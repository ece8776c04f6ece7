"""Gives a command in a sandbox a terminal of its own, connected to the user's.

A terminal controls one session, and the user's controls that of the shell. So the command gets a
new one, and this process copies between the two:

    the user's terminal (raw) ◄──► this process ◄──► new terminal ◄──► the command
"""

import fcntl
import os
import select
import signal
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from mpi_operator.cli import signals
from mpi_operator.local.remote_exec import agent

_CHUNK = 1 << 16
_IN, _OUT = 0, 1
# A signal that arrives just before a wait does not end it.
_SIGNAL_SECONDS = 0.5


def run(address: str, request: list[str]) -> int:
    """Have an agent's server run a request on a new terminal; its exit code."""
    ours, theirs = os.openpty()
    _copy_size(ours)
    try:
        node = agent.connect(address)
        agent.ask(node, request, (theirs, theirs, theirs))
    except OSError as error:
        return agent.fail(f"mpijob: {error}")
    finally:
        os.close(theirs)
    with _raw(), _resized(ours):
        _copy(ours, node.fileno())
    os.close(ours)
    return agent.answer(node)


def _copy(ours: int, node: int) -> None:
    """Copy both ways until the command has ended and everything that it printed is shown."""
    sources = [_IN, ours, node]
    while ours in sources:
        has_ended = node not in sources
        ready, _, _ = select.select(sources, [], [], 0 if has_ended else _SIGNAL_SECONDS)
        if has_ended and ours not in ready:
            return
        if node in ready:
            sources.remove(node)  # the exit code has come; what was printed is still to be copied
        if _IN in ready and not _pass_on(_IN, ours):
            sources.remove(_IN)
        if ours in ready and not _pass_on(ours, _OUT):
            sources.remove(ours)


def _pass_on(source: int, target: int) -> bool:
    """Copy what is there; False at its end."""
    try:
        chunk = os.read(source, _CHUNK)
        view = memoryview(chunk)
        while view:
            view = view[os.write(target, view) :]
    except OSError:  # EIO: no process has the terminal open
        return False
    return bool(chunk)


@contextmanager
def _raw() -> Iterator[None]:
    """Pass every key on, Ctrl-C included: the new terminal handles them."""
    before = termios.tcgetattr(_IN)
    arrived = signals.Deferred()

    def leave() -> None:
        with suppress(termios.error):  # after SIGHUP there is no terminal
            termios.tcsetattr(_IN, termios.TCSANOW, before)
        os._exit(signals.exit_code(arrived.number))

    arrived.on_arrival = leave
    with arrived:
        tty.setraw(_IN, termios.TCSADRAIN)  # the default would drop what was typed ahead
        try:
            yield
        finally:
            termios.tcsetattr(_IN, termios.TCSADRAIN, before)


@contextmanager
def _resized(ours: int) -> Iterator[None]:
    """Keep the size of the new terminal that of the user's."""
    before = signal.signal(signal.SIGWINCH, lambda *_: _copy_size(ours))
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)


def _copy_size(ours: int) -> None:
    with suppress(OSError):
        size = fcntl.ioctl(_IN, termios.TIOCGWINSZ, bytes(8))
        fcntl.ioctl(ours, termios.TIOCSWINSZ, size)
