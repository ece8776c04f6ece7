"""What the remote shell of a launcher reports about its workers.

`build/scripts/remote_shell.sh` prints one line of `key=value` fields per event: in the launcher's
log while it waits, and in its termination message when a worker is lost. This is the only place
that parses these lines, and that words them for users.
"""

import re
from dataclasses import dataclass

from mpi_operator.build.scripts import EVENT, Event

_LINE = (
    re.escape(EVENT) + r"(?P<event>[a-z-]+) worker=(?P<worker>\S+)"
    r"(?: seconds=(?P<seconds>\d+))?(?: cause=(?P<cause>.*))?"
)
_SENTENCES = {
    Event.WAITING: "Launcher has waited {seconds}s for {worker}: {cause}",
    Event.GAVE_UP: "Launcher gave up on {worker} after {seconds}s: {cause}",
    Event.LOST: "Launcher lost {worker} after {seconds}s: {cause}",
    Event.CONTINUED: "Launcher continued with {worker}",
}


@dataclass(frozen=True)
class RemoteShellEvent:
    """What a remote shell reports about a worker."""

    event: str
    worker: str
    seconds: str = ""
    cause: str = ""
    is_whole_line: bool = True  # nothing is in front of it

    @property
    def sentence(self) -> str:
        return _SENTENCES[Event(self.event)].format_map(vars(self))


def remote_shell_event(line: str) -> RemoteShellEvent | None:
    """The event in a line of a log or a termination message; mpirun may put a tag before it."""
    # Not compiled at import, which takes longer than all the rest of a controller that sees none.
    found = re.search(_LINE, line) if EVENT in line else None
    if found is None or found["event"] not in list(Event):
        return None
    fields = {name: (text or "").strip() for name, text in found.groupdict().items()}
    return RemoteShellEvent(**fields, is_whole_line=found.start() == 0)


def remote_shell_events(words: str) -> list[RemoteShellEvent]:
    return [event for line in words.splitlines() if (event := remote_shell_event(line))]


def readable(words: str) -> str:
    """The same lines, with a sentence in place of each event."""
    lines = words.splitlines() if EVENT in words else ()
    worded = (event.sentence if (event := remote_shell_event(line)) else line for line in lines)
    return "\n".join(worded) or words
