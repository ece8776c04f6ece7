"""Workers are deleted and the operator is killed at random moments, and every job succeeds."""

import asyncio
import os
from random import Random

import pytest

from mpi_operator.kube import errors
from mpi_operator.kube.client import DeleteOptions
from mpi_operator.kube.resources import PODS
from tests.cluster.operator.installation import NAMESPACE, Installation
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import FLAVOURS, one_rank_each
from tests.cluster.operator.test_faults import BRISK, job

# `make soak-lost-workers` wants many: a job that does not recover does so rarely.
ROUNDS = int(os.environ.get("MPI_OPERATOR_LOSSES", "1"))
_MOST_LOSSES = 2  # of a job: a worker that is lost more often is replaced later and later


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_jobs_that_lose_workers_at_random_succeed(
    lab: Lab, installation: Installation, seed: int
) -> None:
    dice = Random(seed)
    for mpi, flavour in FLAVOURS.items():
        await lab.submit(job(BRISK, mpi, flavour=flavour))

    *losses, _ = await asyncio.gather(
        *(_lose_workers(lab, mpi, Random(dice.random())) for mpi in FLAVOURS),
        _kill_operator(lab, installation, dice),
    )

    assert all(losses), losses
    await lab.succeed_all(FLAVOURS, 300)
    for mpi in FLAVOURS:
        assert await lab.ranks(mpi) == one_rank_each(mpi), await lab.account(mpi)
    await asyncio.to_thread(installation.wait)


async def _lose_workers(lab: Lab, name: str, dice: Random) -> int:
    """Delete workers of a job, with or without their grace period; how many it lost."""
    losses = 0
    for _ in range(dice.randint(1, _MOST_LOSSES)):
        worker = f"{name}-worker-{dice.randint(0, 1)}"
        await _some_moment(lab, name, dice, worker)
        grace = dice.choice([0, 1, None])
        is_deleted = await _delete(lab, worker, lab.namespace, grace)
        # What is deleted at the end of the job is no loss.
        losses += is_deleted and not await lab.has_condition(name, "Succeeded")
    return losses


async def _kill_operator(lab: Lab, installation: Installation, dice: Random) -> None:
    """Kill the operator that leads; a new pod takes its place, because it needs no back-off."""
    name = dice.choice([*FLAVOURS])
    await _some_moment(lab, name, dice, f"{name}-worker-0")
    leader = await asyncio.to_thread(installation.leader)
    await asyncio.to_thread(installation.kill, leader)
    assert await _delete(lab, leader, NAMESPACE, 0)


async def _delete(lab: Lab, pod: str, namespace: str, grace: int | None) -> bool:
    """Delete a pod; whether there was one."""
    try:
        await lab.client.delete(PODS, pod, namespace, DeleteOptions(grace_period_seconds=grace))
    except errors.NotFound:
        return False  # it is being replaced, or cleaned up
    return True


async def _some_moment(lab: Lab, name: str, dice: Random, worker: str) -> None:
    """Wait until a job has got so far, and has a worker that can be lost, or is over."""
    words = dice.choice(["", "rank 0 of 2", "rank 1 of 2"])

    async def has_come() -> bool:
        if await lab.has_condition(name, "Succeeded"):
            return True
        try:
            is_there = worker in await lab.pod_names(name, "worker")
            return is_there and (not words or words in await lab.log(name))
        except errors.ApiError:
            return False  # its newest pod has not started yet

    await lab.eventually(name, has_come, 120)
