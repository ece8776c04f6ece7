"""Flags of the operator that only a whole cluster can try."""

from collections.abc import Iterator

import pytest

from tests.cluster.operator.installation import Installation
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import FLAVOURS, one_rank_each, pi


@pytest.fixture(scope="module")
def cluster_domain(installation: Installation) -> Iterator[None]:
    with installation.flags("--cluster-domain=cluster.local"):
        yield


@pytest.mark.usefixtures("cluster_domain")
async def test_the_launcher_works_too_in_a_domain_with_a_name(lab: Lab) -> None:
    for mpi, flavour in FLAVOURS.items():
        await lab.submit(pi(mpi, flavour, ranks=3, runLauncherAsWorker=True))

    await lab.succeed_all(FLAVOURS)

    for mpi in FLAVOURS:
        ranks = await lab.ranks(mpi)
        assert set(ranks.values()) == {f"{mpi}-launcher", *one_rank_each(mpi).values()}
        assert await lab.restarts(mpi) == 0
