"""What the runs of a user hold, on disk."""

import fcntl
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest

from mpi_operator.local.kubelet.allocator import Holding
from mpi_operator.local.runs import run_directories
from mpi_operator.local.runs.resource_ledger import ResourceLedger

HELD = Holding({"cpu": Fraction(3, 2)}, ["GPU-1"], ["pi"])
# Holds a CPU until it is killed.
OWNER = """
import sys
from fractions import Fraction
from pathlib import Path
from mpi_operator.local.kubelet.allocator import Holding
from mpi_operator.local.runs import run_directories
from mpi_operator.local.runs.resource_ledger import ResourceLedger
owned = run_directories.create(Path(sys.argv[1]))
ResourceLedger(owned.directory).write(Holding({"cpu": Fraction(1)}, [], ["lost"]))
print(owned.directory.name, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def runs(tmp_path):
    return tmp_path / "local"


@pytest.fixture
def owned(runs):
    made = [run_directories.create(runs) for _ in range(2)]
    yield made
    for each in made:
        each.end()


def test_a_run_sees_what_the_others_hold(owned):
    first, second = (ResourceLedger(each.directory) for each in owned)
    with first.exclusive():
        first.write(HELD)
    assert first.others() == []
    assert second.others() == [
        Holding(HELD.amounts, HELD.gpus, HELD.groups, owned[0].directory.name)
    ]


def test_a_run_that_has_ended_holds_nothing(owned):
    ResourceLedger(owned[0].directory).write(HELD)
    owned[0].end()
    assert ResourceLedger(owned[1].directory).others() == []


def test_a_killed_run_holds_nothing(runs, owned):
    ledger = ResourceLedger(owned[0].directory)
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(runs)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    name = process.stdout.readline().decode().strip()
    assert [each.run for each in ledger.others()] == [name]
    process.kill()
    process.communicate()
    assert (runs / name / "resources.json").exists()
    assert ledger.others() == []


def test_only_one_run_decides_at_a_time(runs, owned):
    with (
        ResourceLedger(owned[0].directory).exclusive(),
        (runs.parent / ".resources.lock").open() as lock,
        pytest.raises(BlockingIOError),
    ):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_runs_may_start_and_end_while_another_looks_what_they_hold(runs, owned):
    """Between any two steps of the one that looks, a run may appear or go away."""
    ledger = ResourceLedger(owned[0].directory)
    with ThreadPoolExecutor() as pool:
        coming_and_going = pool.submit(_start_and_end, runs, 300)
        while not coming_and_going.done():
            assert ledger.others() == []
        coming_and_going.result()
    left = sorted(entry.name for entry in runs.glob("*/"))
    assert left == sorted(each.directory.name for each in owned)


def _start_and_end(runs: Path, times: int) -> None:
    for _ in range(times):
        run_directories.create(runs).end(is_clear=True)
