"""Real processes on this machine. What is counted before a test is counted after it."""

import pytest

from mpi_operator.local.runs import run_directories
from mpi_operator.local.sandbox.protocol import Kind
from tests.local.descriptors import descriptors
from tests.local.machine import machine
from tests.local.run_processes import marked
from tests.support.waiting import block_until

KINDS = [Kind.NAMESPACES, Kind.PLAIN]


@pytest.fixture(params=KINDS, ids=str)
def kind(request):
    return request.param


@pytest.fixture
def root(tmp_path):
    """Where runs live; when a test is over nothing of them is left."""
    before = descriptors()
    place = tmp_path / "runs"
    yield place
    block_until(lambda: marked(place) == [])
    assert not place.exists() or [entry.name for entry in place.iterdir()] == [".lock"]
    after = descriptors()
    assert len(after) <= len(before), f"{sorted(before)} became {sorted(after)}"


@pytest.fixture
def run(root):
    """A directory that the test owns."""
    owned = run_directories.create(root)
    yield owned
    owned.end()


@pytest.fixture
async def pods(run, tmp_path, kind):
    """A cluster of this machine alone."""
    async with machine(run.directory, tmp_path, kind=kind) as ready:
        yield ready
