"""Flags of the operator that only a whole cluster can try."""

from collections.abc import Iterator

import pytest

from tests.cluster.operator.installation import Installation
from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import FLAVOURS, pi


@pytest.fixture(scope="module")
def cluster_domain(installation: Installation) -> Iterator[None]:
    with installation.flags("--cluster-domain=cluster.local"):
        yield


@pytest.mark.usefixtures("cluster_domain")
@pytest.mark.parametrize("mpi", FLAVOURS)
async def test_the_launcher_works_too_in_a_domain_with_a_name(lab: Lab, mpi: str) -> None:
    await lab.submit(pi("pi", FLAVOURS[mpi], ranks=3, runLauncherAsWorker=True))

    await lab.succeeds("pi")

    ranks = await lab.ranks("pi")
    assert set(ranks.values()) == {"pi-launcher", "pi-worker-0", "pi-worker-1"}
    assert await lab.restarts("pi") == 0
