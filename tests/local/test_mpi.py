"""Real MPI jobs: each rank runs where the hostfile says, and they reach each other."""

from pathlib import Path

import pytest

from mpi_operator.local import mpi
from mpi_operator.local.sandbox.protocol import Kind
from tests.local import mpi_job
from tests.local.environments import PACKAGES, environment
from tests.local.machine import machine

pytestmark = pytest.mark.timeout(300)  # the first time, wheels are fetched: 330 MB for Intel's


@pytest.fixture(scope="session", params=PACKAGES, ids=str)
def installation(request):
    made = environment(request.param)
    return mpi.Installation(request.param, made.mpirun)


@pytest.fixture
async def pods(run, tmp_path, kind, installation):
    (tmp_path / "ranks.py").write_text(mpi_job.PROGRAM)
    tools = installation.tools
    async with machine(run.directory, tmp_path, kind=kind, tools=lambda pod: tools) as ready:
        yield ready


@pytest.mark.parametrize(
    ("workers", "slots"), [(2, 1), (2, 2)], ids=["a rank each", "two ranks each"]
)
async def test_ranks_run_where_the_hostfile_says(pods, installation, workers, slots):
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


async def test_a_job_that_is_deleted_leaves_nothing(pods, installation):
    before = segments()
    script = "from mpi4py import MPI; print('up', flush=True); import time; time.sleep(600)"
    command = ("mpirun", "-n", "2", "python", "-c", script)
    await mpi_job.start(pods, installation.implementation, 2, *command)
    follow = pods.node.log("pi-launcher-x", "default", follow=True)
    async for line in follow:
        if line.strip().endswith(b"up"):
            break
    await follow.aclose()
    for name in ("pi-launcher-x", "pi-worker-0", "pi-worker-1"):
        await pods.delete(name, grace_seconds=0)
        await pods.until_gone(name)
    assert segments() <= before


def segments() -> set[str]:
    """What Open MPI has in the memory that all of this machine share."""
    memory = Path("/dev/shm")
    return {entry.name for entry in memory.glob("*segment*")}


async def test_without_a_network_the_sandboxes_are_plain(run, tmp_path, monkeypatch):
    monkeypatch.setattr("mpi_operator.local.sandbox.host.has_network", lambda: False)
    async with machine(run.directory, tmp_path) as pods:
        assert pods.node.kind is Kind.PLAIN
        assert "loopback" in pods.node.why_plain
