"""GPUs: a pod sees those that it was given, and what runs in it from outside sees the same."""

import os

import pytest

from tests.local.machine import machine
from tests.support.waiting import until

ONE = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
SHOW = "echo $CUDA_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES"


@pytest.fixture
async def pods(run, tmp_path, kind):
    """A machine with two GPUs that its user may use, each given to a worker."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "3,5"}
    async with machine(run.directory, tmp_path, kind=kind, environment=environment) as ready:
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
        return "asks for 1, and this machine has 2 GPUs, of which 2 are taken" in str(conditions)

    await until(complains)
    await pods.delete("w-1", grace_seconds=0)
    await pods.end_of("late")
    assert await pods.output("late") == ["5 5"]
