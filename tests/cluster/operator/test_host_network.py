"""On the network of the node, where all pods share its ports."""

import asyncio

import pytest

from tests.cluster.operator.lab import Lab
from tests.cluster.operator.pi import FLAVOURS, Wishes, pi, pi_as_user

# Without the spread of other jobs: all on one node.
CROWDED = {"hostNetwork": True, "topologySpreadConstraints": []}


async def test_a_worker_on_the_network_of_its_node(lab: Lab) -> None:
    await lab.submit(pi(wishes=Wishes(workers=1, pod={"hostNetwork": True}), ranks=1))

    await lab.succeeds("pi")

    assert await lab.restarts("pi") == 0


@pytest.mark.parametrize("mpi", FLAVOURS)
async def test_several_workers_of_several_jobs_on_one_node(lab: Lab, mpi: str) -> None:
    here = {"nodeSelector": {"kubernetes.io/hostname": "node-0"}}
    wishes = Wishes(pod=CROWDED | here)
    for name, make in (("one", pi), ("two", pi_as_user)):
        await lab.submit(make(name, FLAVOURS[mpi], wishes))

    await asyncio.gather(lab.succeeds("one"), lab.succeeds("two"))

    assert [await lab.restarts(name) for name in ("one", "two")] == [0, 0]
    assert await lab.nodes("one") == await lab.nodes("two") == {"node-0"}
