"""Real processes on this machine. What is counted before a test is counted after it."""

import os
from pathlib import Path

import pytest

from mpi_operator.local.kubelet.container_config import POD_VARIABLE
from mpi_operator.local.runs import run_directories
from mpi_operator.local.sandbox import process_tree
from mpi_operator.local.sandbox.process_tree import RUN_VARIABLE
from mpi_operator.local.sandbox.protocol import Kind
from tests.local.machine import machine
from tests.support.waiting import block_until

KINDS = [Kind.NAMESPACES, Kind.PLAIN]


def marked(directory: Path) -> list[int]:
    """The processes of all runs below a directory."""
    mark = f"{RUN_VARIABLE}={directory}/".encode()
    return [pid for pid in process_tree.parents() if _has_prefix(pid, mark)]


def processes(run: run_directories.Run, pod: str) -> list[int]:
    """Of a pod of a run: other runs may have pods of that name at the same time."""
    wanted = {RUN_VARIABLE: str(run.directory), POD_VARIABLE: pod}
    return [
        pid
        for pid in process_tree.parents()
        if all(process_tree.was_started_with(pid, *each) for each in wanted.items())
    ]


def _has_prefix(pid: int, mark: bytes) -> bool:
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(variable.startswith(mark) for variable in variables)


@pytest.fixture(params=KINDS, ids=str)
def kind(request):
    return request.param


@pytest.fixture
def root(tmp_path):
    """Where runs live; when a test is over nothing of them is left."""
    descriptors = os.listdir("/proc/self/fd")
    place = tmp_path / "runs"
    yield place
    block_until(lambda: marked(place) == [], 5)
    assert not place.exists() or [entry.name for entry in place.iterdir()] == [".lock"]
    assert len(os.listdir("/proc/self/fd")) <= len(descriptors)


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
