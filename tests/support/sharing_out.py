"""How tests are shared out among processes, most of which wait most of the time.

A file is never split: its tests share what is expensive to start. Neither are the folders whose
tests share a cluster or a control plane: two cores bear few of them.
"""

import os

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# They take longest, so several processes begin with them, one each.
WHOLE = ("tests/cluster/", "tests/api/operator/", "tests/api/")
_FAST = "tests/unit/"
# Then those that take longest, lest one of them is left over when all others have ended. One that
# is missing here costs a little time and nothing else.
LONG = (
    "tests/local/test_examples.py",
    "tests/local/test_remote_shell.py",
    "tests/local/test_verbs.py",
    "tests/local/test_run.py",
    "tests/local/test_stories.py",
)


class Scheduler(LoadScopeScheduling):  # type: ignore[misc] # it has no types
    """Gives work to processes unit by unit, in the order of collection."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)


def unit(test: str) -> str:
    """What one process runs as a whole."""
    return next((place for place in WHOLE if test.startswith(place)), test.partition("::")[0])


def rank(test: str, *, alone: bool) -> int:
    """What comes first: the fast tests, for a mistake should show in seconds; then the longest.

    Of several processes some begin with what is run as a whole. One alone comes to that last.
    """
    places = (_FAST, *LONG)
    if (whole := unit(test)) in WHOLE:
        place = WHOLE.index(whole)
        return len(places) + len(WHOLE) - place if alone else place - len(WHOLE)
    return next((n for n, place in enumerate(places) if test.startswith(place)), len(places))


def processes() -> int:
    """Two more than there are cores, for most tests wait."""
    return min((os.cpu_count() or 1) + 2, 8)
