"""Real MPI jobs: each rank runs where the hostfile says, and they reach each other."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from mpi_operator.local import mpi_installation
from mpi_operator.local.sandbox.protocol import Kind
from tests.local import mpi_job
from tests.local.environments import PACKAGES, environment
from tests.local.machine import machine
from tests.local.run_processes import marked
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(300)  # the first time, wheels are fetched: 330 MB for Intel's


@pytest.fixture(scope="session", params=PACKAGES, ids=str)
def installation(request):
    made = environment(request.param)
    return mpi_installation.Installation(request.param, made.mpirun)


@pytest.fixture
async def pods(run, tmp_path, kind, installation):
    (tmp_path / "ranks.py").write_text(mpi_job.PROGRAM)
    tools = installation.tools
    async with machine(run.directory, tmp_path, kind=kind, tools=tools) as ready:
        yield ready


async def test_ranks_run_where_the_hostfile_says(pods, installation):
    workers, slots = 2, 2
    count = workers * slots
    command = ("mpirun", "-n", str(count), "python", "ranks.py")
    await mpi_job.start(pods, installation.implementation, workers, *command, slots=slots)
    status = await pods.end_of("pi-launcher-x")
    assert status["phase"] == "Succeeded", mpi_job.why(status)
    total = count * (count + 1) // 2
    assert mpi_job.ranks(await pods.output("pi-launcher-x")) == [
        (rank, f"default/pi-worker-{rank // slots}", total) for rank in range(count)
    ]


async def test_a_rank_that_fails_fails_the_job(pods, installation):
    script = "import sys; from mpi4py import MPI; sys.exit(7 if MPI.COMM_WORLD.rank else 0)"
    command = ("mpirun", "-n", "2", "python", "-c", script)
    await mpi_job.start(pods, installation.implementation, 2, *command)
    status = await pods.end_of("pi-launcher-x")
    assert status["phase"] == "Failed"
    # Intel's mpirun ends with 255 at times when ranks of two hosts end at once, bare as well.
    codes = {7, 255} if installation.implementation == "Intel" else {7}
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] in codes


# Ranks connect when they first need to, so there are no connections before the network is gone.
LATE = """
from array import array
from pathlib import Path
import time
from mpi4py import MPI
rank = MPI.COMM_WORLD.rank
Path(f"ready-{rank}").touch()
while not Path("gone").exists():
    time.sleep(0.01)
sums = array("d", bytes(8 << 20))
MPI.COMM_WORLD.Allreduce([array("d", [rank + 1.0]) * (1 << 20), MPI.DOUBLE], [sums, MPI.DOUBLE])
print(f"sum {sums[0]}\\n", end="", flush=True)
"""


@contextmanager
def network(name: str) -> Iterator[None]:
    """A network of this machine, as container programs and VPNs create them."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("a network needs root, and ip of iproute2")
    peer = f"{name}p"
    ip("link", "add", name, "type", "veth", "peer", "name", peer)
    try:
        ip("address", "add", "172.31.77.1/24", "dev", name)
        for each in (name, peer):
            ip("link", "set", each, "up")
        yield
    finally:
        ip("link", "delete", name)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


async def test_a_network_that_disappears_does_not_hang_ranks(pods, installation, tmp_path):
    ready = [tmp_path / f"ready-{rank}" for rank in range(2)]
    with network(f"mpit{os.getpid()}"):
        command = ("mpirun", "-n", "2", "python", "-c", LATE)
        await mpi_job.start(pods, installation.implementation, 2, *command)
        await until(lambda: all(path.exists() for path in ready), 60)
    (tmp_path / "gone").touch()
    status = await pods.end_of("pi-launcher-x", 60)
    assert status["phase"] == "Succeeded", mpi_job.why(status)
    lines = await pods.output("pi-launcher-x")
    assert [line for line in lines if "sum" in line] == ["sum 3.0"] * 2


async def test_a_job_that_is_deleted_leaves_nothing(pods, installation, run, kind):
    script = "from mpi4py import MPI; print('up', flush=True); import time; time.sleep(600)"
    command = ("mpirun", "-n", "2", "python", "-c", script)
    await mpi_job.start(pods, installation.implementation, 2, *command)
    await pods.until_phase("pi-launcher-x", "Running")

    async def is_up() -> bool:
        return "".join(await pods.output("pi-launcher-x")).count("up") == 2

    await until(is_up, 30)
    segments = segments_of(run.directory)
    # A pod in namespaces has a /dev/shm of its own. Others share the machine's.
    assert bool(segments) == (installation.implementation == "OpenMPI" and kind is Kind.PLAIN)
    for name in ("pi-launcher-x", "pi-worker-0", "pi-worker-1"):
        await pods.delete(name, grace_seconds=0)
        await pods.until_gone(name)
    await until(lambda: [path for path in segments if path.exists()] == [])


def segments_of(run: Path) -> set[Path]:
    """The segments of Open MPI in the machine's shared memory that processes of a run use.

    Only those count: other programs may leave segments there at the same time.
    """
    return {path for pid in marked(run.parent) for path in mapped_files(pid) if is_segment(path)}


def is_segment(path: Path) -> bool:
    return path.is_relative_to("/dev/shm") and "segment" in path.name and path.exists()


def mapped_files(pid: int) -> set[Path]:
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
        return {Path(line[line.index("/") :]) for line in lines if "/" in line}
    return set()


async def test_without_a_network_the_sandboxes_are_plain(run, tmp_path, monkeypatch):
    monkeypatch.setattr("mpi_operator.local.sandbox.host.has_network", lambda: False)
    async with machine(run.directory, tmp_path) as pods:
        assert pods.node.kind is Kind.PLAIN
        assert "loopback" in pods.node.why_plain
