"""Every MPI, as root and not: each rank runs on its worker, and the launcher starts once."""

import os
from collections.abc import Callable

import pytest

from mpi_operator.kube.resources import Manifest
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import FLAVOURS, one_rank_each, pi, pi_as_user

USERS: dict[str, Callable[..., Manifest]] = {"root": pi, "mpiuser": pi_as_user}
# `make soak-starts` wants many: a start that stumbles does so rarely.
STARTS = int(os.environ.get("MPI_OPERATOR_STARTS", "1"))


@pytest.mark.parametrize("start", range(STARTS))
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mpi", FLAVOURS)
async def test_ranks_run_on_their_workers(lab: Lab, mpi: str, user: str, start: int) -> None:
    await lab.submit(USERS[user]("pi", FLAVOURS[mpi]))

    await lab.succeeds("pi")

    assert await lab.ranks("pi") == one_rank_each("pi")
    assert len(await lab.nodes("pi")) == 2
    assert await lab.restarts("pi") == 0
    assert "pi is about 3.14" in await lab.log("pi")


@pytest.mark.parametrize("mpi", FLAVOURS)
async def test_two_ranks_on_each_of_two_workers(lab: Lab, mpi: str) -> None:
    await lab.submit(pi("pi", FLAVOURS[mpi], ranks=4, slotsPerWorker=2))

    await lab.succeeds("pi")

    assert sorted((await lab.ranks("pi")).values()) == sorted(
        ["pi-worker-0", "pi-worker-0", "pi-worker-1", "pi-worker-1"]
    )
