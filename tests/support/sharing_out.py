"""How tests are shared out among processes, most of which wait most of the time.

A file is never split: its tests share what is expensive to start. Neither is `tests/cluster`, for a
machine of two cores bears one cluster with nodes.
"""

import os

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

_WHOLE = "tests/cluster/"
_FAST = "tests/unit/"
# Those that take longest begin first, lest one of them is left over when all others have ended.
# Those that keep the machine busy take turns with those that wait. One that is missing here costs
# a little time and nothing else.
LONG = (
    "tests/api/kube/test_informer_faults.py",
    "tests/api/kube/test_election.py",
    "tests/api/operator/test_kills.py",
    "tests/api/operator/test_refusals.py",
    "tests/api/operator/test_garbage.py",
    "tests/api/operator/test_adoption.py",
    "tests/api/operator/test_restarts.py",
    "tests/api/operator/test_workers.py",
    "tests/local/test_examples.py",
    "tests/api/kube/test_client_faults.py",
    "tests/local/test_stories.py",
    "tests/api/operator/test_cleanup.py",
    "tests/api/operator/test_leaders.py",
    "tests/api/devcluster/",
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
    return _WHOLE if test.startswith(_WHOLE) else test.partition("::")[0]


def rank(test: str, *, alone: bool) -> int:
    """What comes first: the fast tests, for a mistake should show in seconds; then the longest.

    Of several processes one begins with the cluster at once: it takes as long as all others.
    """
    if test.startswith(_WHOLE):
        return len(LONG) + 2 if alone else -1
    places = (_FAST, *LONG)
    return next((n for n, place in enumerate(places) if test.startswith(place)), len(places))


def processes() -> int:
    """One more than there are cores, for most tests wait. Each may have a control plane."""
    return min((os.cpu_count() or 1) + 1, 8)
