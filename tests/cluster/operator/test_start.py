"""Starts that take long, and starts that do not succeed: both say what they wait for."""

import asyncio

import pytest

from mpi_operator.api.annotations import INIT_TIMEOUT
from mpi_operator.kube.resources import Manifest
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import FLAVOURS, Wishes, one_rank_each, pi

LATE = ["sh", "-c", "sleep 8; exec /usr/sbin/sshd -De"]
NEVER = ["sleep", "600"]


@pytest.mark.parametrize("mpi", FLAVOURS)
async def test_the_first_mpirun_waits_for_an_sshd_that_is_late(lab: Lab, mpi: str) -> None:
    await lab.submit(pi("pi", FLAVOURS[mpi], Wishes(worker={"command": LATE})))

    await lab.succeeds("pi")

    assert await lab.ranks("pi") == one_rank_each("pi")
    assert await lab.restarts("pi") == 0
    assert "waiting for pi-worker-" in await lab.log("pi")


async def test_a_start_that_does_not_come_about_fails_and_names_the_worker(lab: Lab) -> None:
    jobs = {
        "nosshd": (Wishes(worker={"command": NEVER}), "Connection refused"),
        "noimage": (Wishes(worker={"image": "mpioperator/no-such-image:1"}), "no-such-image"),
        "nonode": (Wishes(worker={"resources": {"requests": {"cpu": "1000"}}}), "Insufficient cpu"),
    }
    for name, (wishes, _) in jobs.items():
        await lab.submit(_impatient(pi(name, wishes=wishes)))

    failures = await asyncio.gather(*(lab.fails(name) for name in jobs))

    for (name, (_, cause)), failed in zip(jobs.items(), failures, strict=True):
        assert f"{name}-worker-" in failed["message"], failed
        assert cause in failed["message"], failed
        assert any(cause in message for _, message in await lab.events(name))


def _impatient(job: Manifest) -> Manifest:
    metadata = {**job["metadata"], "annotations": {INIT_TIMEOUT: "15s"}}
    return {**job, "metadata": metadata}
