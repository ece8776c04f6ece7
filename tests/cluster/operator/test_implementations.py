"""Every MPI, as root and not: each rank runs on its worker, and the launcher starts once."""

import os
from collections.abc import Callable

import pytest

from mpi_operator.build import scripts
from mpi_operator.kube.resources import Manifest
from tests.cluster.operator.conftest import RESTARTS
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import FLAVOURS, Overrides, one_rank_each, pi, pi_as_user

USERS: dict[str, Callable[..., Manifest]] = {"root": pi, "mpiuser": pi_as_user}
# `make soak` wants many: a start that stumbles does so rarely.
STARTS = int(os.environ.get("MPI_OPERATOR_STARTS", "1"))


@pytest.mark.parametrize("start", range(STARTS))
@pytest.mark.parametrize("user", USERS)
async def test_ranks_run_on_their_workers(
    lab: Lab, user: str, start: int, record_property: Callable[[str, object], None]
) -> None:
    for mpi, flavour in FLAVOURS.items():
        await lab.submit(USERS[user](mpi, flavour))

    await lab.succeed_all(FLAVOURS)

    restarts = {mpi: await lab.restarts(mpi) for mpi in FLAVOURS}
    record_property(RESTARTS, restarts)
    for mpi in FLAVOURS:
        assert await lab.ranks(mpi) == one_rank_each(mpi)
        assert len(await lab.nodes(mpi)) == 2
        assert restarts[mpi] == 0
        assert "pi is about 3.14" in await lab.log(mpi)


async def test_two_ranks_on_each_of_two_workers_that_the_launcher_waits_for(lab: Lab) -> None:
    for mpi, flavour in FLAVOURS.items():
        job = pi(
            mpi,
            flavour,
            ranks=4,
            slotsPerWorker=2,
            launcherCreationPolicy="WaitForWorkersReady",
        )
        await lab.submit(job)

    await lab.succeed_all(FLAVOURS)

    for mpi in FLAVOURS:
        workers = [f"{mpi}-worker-0", f"{mpi}-worker-0", f"{mpi}-worker-1", f"{mpi}-worker-1"]
        assert sorted((await lab.ranks(mpi)).values()) == workers
        assert await lab.is_launched_last(mpi)
        assert f"{scripts.EVENT}{scripts.Event.WAITING}" not in await lab.log(mpi)


# With many workers, some start the daemons of others: Open MPI itself starts 64, MPICH all. Here 2.
BRANCHES = ("OMPI_MCA_routed_radix", "PRTE_MCA_rml_base_radix", "I_MPI_HYDRA_BRANCH_COUNT")


async def test_workers_start_the_daemons_of_other_workers(lab: Lab) -> None:
    names = ("openmpi", "openmpi-4", "intel")
    tree = {"env": [{"name": name, "value": "2"} for name in BRANCHES]}
    for mpi in names:
        await lab.submit(pi(mpi, FLAVOURS[mpi], Overrides(workers=7, launcher=tree), ranks=7))

    await lab.succeed_all(names)

    for mpi in names:
        assert await lab.ranks(mpi) == one_rank_each(mpi, 7)
        assert await lab.restarts(mpi) == 0
