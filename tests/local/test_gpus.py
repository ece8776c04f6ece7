"""GPUs: a pod sees those that it was given, and what runs in it from outside sees the same."""

import os

import pytest

from mpi_operator.local import mpi_installation
from tests.local import mpi_job
from tests.local.environments import PACKAGES, environment
from tests.local.machine import machine
from tests.support.waiting import until

ONE = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
SHOW = "echo $CUDA_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES"


# Its user may use two of the machine's GPUs.
USER = {**os.environ, "CUDA_VISIBLE_DEVICES": "3,5"}


@pytest.fixture
async def pods(run, tmp_path, kind):
    """A machine with two GPUs, each given to a worker."""
    async with machine(run.directory, tmp_path, kind=kind, environment=USER) as ready:
        for name in ("w-0", "w-1"):
            await ready.create(name, "/usr/sbin/sshd", "-De", container=ONE)
            await ready.until_phase(name, "Running")
        yield ready


async def test_each_worker_has_its_own(pods):
    script = f"ssh w-0 '{SHOW}'; ssh w-1 '{SHOW}'"
    assert await pods.printed("caller", "sh", "-c", script) == ["3 3", "5 5"]


async def test_a_rank_has_those_of_its_worker(pods):
    rank = "MPI_OPERATOR_HOSTS=w-0,w-1 PMIX_RANK=1 mpi-operator-rank"
    assert await pods.printed("caller", "sh", "-c", f"{rank} sh -c '{SHOW}'") == ["5 5"]


async def test_one_too_many_waits_and_says_for_what(pods):
    await pods.create("late", "sh", "-c", SHOW, container=ONE)

    async def complains():
        conditions = (await pods.status("late")).get("conditions") or [{}]
        return "Insufficient nvidia.com/gpu" in str(conditions)

    await until(complains)
    await pods.delete("w-1", grace_seconds=0)
    await pods.end_of("late")
    assert await pods.output("late") == ["5 5"]


SEEN = """
import os
from mpi4py import MPI

seen = MPI.COMM_WORLD.gather(os.environ["CUDA_VISIBLE_DEVICES"])
if seen:
    print(*seen)
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("implementation", "worker", "seen"),
    [
        *(pytest.param(each, ONE, "3 5", id=f"{each}: those of its worker") for each in PACKAGES),
        pytest.param("MPICH", {}, "3,5 3,5", id="the user's, if no container requests any"),
    ],
)
async def test_what_the_ranks_of_an_mpi_see(run, tmp_path, implementation, worker, seen):
    (tmp_path / "seen.py").write_text(SEEN)
    tools = mpi_installation.Installation(implementation, environment(implementation).mpirun).tools
    options = {"environment": USER, "tools": tools}
    async with machine(run.directory, tmp_path, **options) as pods:
        command = ("mpirun", "-n", "2", "python", "seen.py")
        await mpi_job.start(pods, implementation, 2, *command, worker=worker)
        status = await pods.end_of("pi-launcher-x")
        assert status["phase"] == "Succeeded", mpi_job.why(status)
        *_, last = await pods.output("pi-launcher-x")  # Open MPI may have a warning about itself
        assert last == seen
