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

    await asyncio.gather(
        *(_lose_workers(lab, mpi, Random(dice.random())) for mpi in FLAVOURS),
        _kill_operator(lab, installation, dice),
    )

    await lab.succeed_all(FLAVOURS, 300)
    for mpi in FLAVOURS:
        assert await lab.ranks(mpi) == one_rank_each(mpi), await lab.account(mpi)
    await asyncio.to_thread(installation.wait)


async def _lose_workers(lab: Lab, name: str, dice: Random) -> None:
    """Delete workers of a job, with or without their grace period."""
    for _ in range(dice.randint(1, _MOST_LOSSES)):
        await _some_moment(lab, name, dice)
        grace = dice.choice([0, 1, None])
        worker = f"{name}-worker-{dice.randint(0, 1)}"
        await _delete(lab, worker, lab.namespace, grace)


async def _kill_operator(lab: Lab, installation: Installation, dice: Random) -> None:
    """Kill the operator that leads; a new pod takes its place, because it needs no back-off."""
    await _some_moment(lab, dice.choice([*FLAVOURS]), dice)
    leader = await asyncio.to_thread(installation.leader)
    await asyncio.to_thread(installation.kill, leader)
    await _delete(lab, leader, NAMESPACE, 0)


async def _delete(lab: Lab, pod: str, namespace: str, grace: int | None) -> None:
    try:
        await lab.client.delete(PODS, pod, namespace, DeleteOptions(grace_period_seconds=grace))
    except errors.NotFound:
        return  # it is being replaced, or cleaned up


async def _some_moment(lab: Lab, name: str, dice: Random) -> None:
    """Wait until a job has got so far, or is over."""
    words = dice.choice(["", "rank 0 of 2", "rank 1 of 2"])

    async def has_come() -> bool:
        if not words or await lab.has_condition(name, "Succeeded"):
            return True
        try:
            return words in await lab.log(name)
        except errors.ApiError:
            return False  # its newest pod has not started yet

    await lab.eventually(name, has_come, 120)
