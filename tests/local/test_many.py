"""Many workers on this machine: they start, they end, and nothing of them is left."""

import os
from pathlib import Path

import pytest

from mpi_operator import embedded
from mpi_operator.local.runs import run_directories
from tests.local.descriptors import descriptors
from tests.local.job_driver import UNTIL_DONE, JobDriver, running
from tests.local.run_processes import marked, processes
from tests.support.waiting import until

WORKERS = 64
MARK = f"mpi-operator-many-{os.getpid()}"


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A temporary directory of its own."""
    place = tmp_path / "tmp"
    place.mkdir()
    for name in ("TMPDIR", "TMP", "TEMP"):
        monkeypatch.setenv(name, str(place))
    return place


def names_in(directory: Path) -> set[str]:
    return {entry.name for entry in directory.iterdir()}


def children() -> set[int]:
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return set(map(int, file.read().split()))


@pytest.mark.timeout(300)
async def test_many_workers_leave_nothing(root, tmp_path, kind, temporary):
    """Processes, files and descriptors, counted before and after."""
    work = tmp_path / "work"
    work.mkdir()
    before = len(descriptors()), children()
    run = run_directories.create(root)
    try:
        async with embedded.machine(
            run.directory, working_directory=work, oversubscribe=True, kind=kind
        ) as cluster:
            job = JobDriver(cluster, work)
            policy = {"cleanPodPolicy": "All"}
            worker = f"mktemp -t {MARK}-XXXXXX; exec sleep 600"
            await job.submit(UNTIL_DONE, WORKERS, worker=worker, policy=policy)
            await job.until_workers(running(*range(WORKERS)))
            assert len(marked(root)) > WORKERS
            job.finish()
            assert (await job.end()).startswith("Succeeded")
            await job.until_no_workers()
            # Before the machine ends, and not only because it ends.
            await until(lambda: pods_in(run.directory) == 1, 30)
            await until(
                lambda: not any(processes(run, f"default/{name}") for name in running(0, 31, 63)),
                30,
            )
        assert marked(root) == []
    finally:
        run.end()
    assert not run.directory.exists()
    assert names_in(work) == {"done"}
    assert names_in(temporary) == set()
    assert not any(name.startswith(MARK) for name in names_in(Path("/tmp")))
    assert (len(descriptors()), children()) == before, descriptors()


def pods_in(directory: Path) -> int:
    """How many pods have files: the launcher's stay for as long as it is there."""
    return len(list((directory / "pods").iterdir()))
