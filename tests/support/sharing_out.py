"""How tests are shared out among processes, most of which wait most of the time.

A file is never split: its tests share what is expensive to start. Neither are the folders whose
tests share a cluster or a control plane: two cores can run few of them.
"""

import os

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

CLUSTER, PEERS, OPERATOR, API = WHOLE = (
    "tests/cluster/",
    "tests/peers/",
    "tests/api/operator/",
    "tests/api/",
)
FAST = "tests/unit/"
# The longest of the other tests, and those that start their own clusters. They start early, so that
# no process is left with one at the end. A file that is missing here only costs a little time.
LONG = (
    "tests/cluster/test_installers.py",
    "tests/cluster/test_owners.py",
    "tests/cluster/test_command_line.py",
    "tests/local/test_examples.py",
    "tests/local/test_remote_shell.py",
    "tests/local/test_verbs.py",
    "tests/local/test_wheel.py",
    "tests/local/test_release.py",
    "tests/local/test_run.py",
    "tests/local/test_lifecycle.py",
)
# Failures of fast tests should show in seconds. Of several processes, two start with the longest
# tests; a single process runs them last.
_ORDER_OF_SEVERAL = (CLUSTER, OPERATOR, FAST, API, *LONG, PEERS, "")
_ORDER_ALONE = (FAST, *LONG, "", API, OPERATOR, CLUSTER, PEERS)


class Scheduler(LoadScopeScheduling):  # type: ignore[misc] # it has no types
    """Gives work to processes unit by unit, in the order of collection."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)


def unit(test: str) -> str:
    """The unit of work that a test belongs to; one process runs it as a whole."""
    file = test.partition("::")[0]
    if file in LONG:
        return file
    return next((place for place in WHOLE if test.startswith(place)), file)


def rank(test: str, *, alone: bool) -> int:
    """The position of a test in the order."""
    place = next(place for place in (*LONG, *WHOLE, FAST, "") if test.startswith(place))
    return (_ORDER_ALONE if alone else _ORDER_OF_SEVERAL).index(place)


def processes() -> int:
    """Two more than there are cores, because most tests wait."""
    return min((os.cpu_count() or 1) + 2, 8)
